"""Where the packages of a wheel come from; everything else stands in pyproject.toml.

The checkout keeps app, engine, kernels and resources at its top. In a wheel they are packages below ``bassline``, the
only name that an installation adds to site-packages (``app/package/__init__.py`` says how they find each other there).
"""

from tempfile import TemporaryDirectory

from setuptools import find_namespace_packages, find_packages, setup

CODE = ("app", "engine", "kernels")
ITSELF = "app.package"  # what `bassline` is made of
code = [name for name in find_packages() if name.partition(".")[0] in CODE and name != ITSELF]
data = ["resources", *(f"resources.{name}" for name in find_namespace_packages("resources"))]
workshop = TemporaryDirectory(prefix="bassline-build-")  # a build/ that stays would bring removed files back

setup(
    packages=["bassline", *(f"bassline.{name}" for name in (*code, *data))],
    package_dir={"bassline": ITSELF.replace(".", "/"), **{f"bassline.{name}": name for name in (*CODE, "resources")}},
    package_data={f"bassline.{name}": ["*"] for name in data},
    options={"build": {"build_base": workshop.name}},
)
