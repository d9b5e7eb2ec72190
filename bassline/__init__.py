"""What an installed Bassline is called. The program itself is ``app``, ``engine``, ``kernels`` and ``resources``.

In a checkout those four lie beside this folder; in a wheel they lie inside it, so that an installation adds one name
to site-packages and cannot collide with another project's ``app`` or ``engine``. Both ways the folder that holds them
comes first on ``sys.path`` before anything of them is imported (``__main__.py``), also in child processes
(``engine.child_process``).
"""
