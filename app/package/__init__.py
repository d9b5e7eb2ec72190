"""What an installed Bassline is called: this folder is the package ``bassline``.

The program itself is ``app``, ``engine``, ``kernels`` and ``resources``. In a checkout they are at its top; in a wheel
they lie inside ``bassline``, so that an installation adds one name to site-packages and cannot collide with another
project's ``app`` or ``engine``. Both ways the folder that holds them comes first on ``sys.path`` before anything of
them is imported (``__main__.py``), also in child processes (``engine.child_process``).
"""
