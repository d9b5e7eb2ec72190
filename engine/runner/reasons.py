"""What in a test file is a reason for one process, by name. Each ends a sentence that begins with "because"."""

import sys

FIXTURES = {
    "monkeypatch": "they replace things in the candidate's process (monkeypatch)",
    "mocker": "they replace things in the candidate's process (mocker)",
    "tmp_path": "they share files with the candidate (tmp_path)",
    "tmp_path_factory": "they share files with the candidate (tmp_path_factory)",
    "tmpdir": "they share files with the candidate (tmpdir)",
    "caplog": "they look at the candidate's log (caplog)",
}
MODULES = {
    "asyncio": "they run coroutines of the candidate (asyncio)",
    "anyio": "they run coroutines of the candidate (anyio)",
    "trio": "they run coroutines of the candidate (trio)",
    "threading": "they use the candidate from several threads (threading)",
    "concurrent": "they use the candidate from several threads or processes (concurrent.futures)",
    "multiprocessing": "they use the candidate from several processes (multiprocessing)",
    "subprocess": "they start the candidate's file as a program (subprocess)",
    "runpy": "they run the candidate's file (runpy)",
    "inspect": "they look into the candidate's code (inspect)",
    "tempfile": "they share files with the candidate (tempfile)",
    "freezegun": "they stop the candidate's clock (freezegun)",
    "time_machine": "they stop the candidate's clock (time_machine)",
    "pickle": "they pickle the candidate's objects (pickle)",
    "weakref": "they watch the candidate's objects (weakref)",
    "gc": "they watch the candidate's objects (gc)",
    "tracemalloc": "they measure the candidate's memory (tracemalloc)",
    "ctypes": "they look into the candidate's memory (ctypes)",
}
FUNCTIONS = {
    "MonkeyPatch": "they replace things in the candidate's process (MonkeyPatch)",
    "patch": "they replace things in the candidate's process (patch)",
    "open": "they share files with the candidate (open)",
    "reload": "they import the candidate again (reload)",
    "testmod": "they read the candidate's own doctests (testmod)",
    "get_type_hints": "they look into the candidate's code (get_type_hints)",
    "is_dataclass": "they look into the candidate's dataclasses (is_dataclass)",
    "asdict": "they look into the candidate's dataclasses (asdict)",
    "astuple": "they look into the candidate's dataclasses (astuple)",
    "fields": "they look into the candidate's dataclasses (fields)",
    "replace": "they look into the candidate's dataclasses (replace)",
    "issubclass": "they look into the candidate's classes (issubclass)",
    "setattr": "they replace things in the candidate (setattr)",
    "delattr": "they replace things in the candidate (delattr)",
}
METHODS = {
    "write_text": "they share files with the candidate (write_text)",
    "write_bytes": "they share files with the candidate (write_bytes)",
    "read_text": "they share files with the candidate (read_text)",
    "assertLogs": "they look at the candidate's log (assertLogs)",
    "assertNoLogs": "they look at the candidate's log (assertNoLogs)",
}
# Functions that set something of the whole process, by where they are defined; a folder stands for all that is in it.
_SETTERS = {
    "they change the candidate's folder": "os.chdir os.fchdir contextlib.chdir",
    "they change the candidate's environment": (
        "os.environ.update os.environ.setdefault os.environ.pop os.environ.popitem os.environ.clear os.putenv "
        "os.unsetenv os.environ.__setitem__ os.environ.__delitem__"
    ),
    "they change the candidate's process": "os.umask os.nice os.setpriority resource.setrlimit os.kill os.killpg",
    "they share files with the candidate": "os.pipe os.dup os.dup2 os.fdopen os.mkfifo",
    "they change the candidate's interpreter": (
        "sys.setrecursionlimit sys.set_int_max_str_digits sys.setswitchinterval sys.settrace sys.setprofile "
        "sys.addaudithook threading.setprofile threading.settrace codecs.register codecs.register_error "
        "copyreg.pickle"
    ),
    "they interrupt the candidate": "signal",
    "they change the candidate's time zone": "time.tzset",
    "they change the candidate's locale": "locale.setlocale gettext.install gettext.textdomain gettext.bindtextdomain",
    "they change the candidate's settings of decimal": "decimal.getcontext decimal.setcontext decimal.localcontext",
    "they change the candidate's settings of numpy": (
        "numpy.seterr numpy.seterrcall numpy.errstate numpy.setbufsize numpy.set_printoptions numpy.printoptions"
    ),
    "they change the candidate's sockets": "socket.setdefaulttimeout",
    "they look at the candidate's log": "logging",
    "they change a registry of the candidate's process": (
        "csv.register_dialect csv.unregister_dialect csv.field_size_limit mimetypes.add_type mimetypes.init "
        "calendar.setfirstweekday sqlite3.register_adapter sqlite3.register_converter atexit.register"
    ),
}
SETTERS = {name: f"{reason} ({name})" for reason, names in _SETTERS.items() for name in names.split()}

# Packages whose objects stay on the tests' side or cross as they are. The objects of every other one that the tests
# import would be of other classes in the candidate's process.
_KEPT_APART = frozenset(
    """
_pytest pytest pluggy py hypothesis numpy scipy mpmath parameterized ddt nose nose2 unittest2 mock assertpy hamcrest
expects sure faker deepdiff dirty_equals typing_extensions more_itertools toolz cytoolz tqdm dateutil pytz
""".split()  # noqa: SIM905
)
_NEVER_APART = ("scipy.sparse", "scipy.spatial", "scipy.interpolate", "scipy.stats", "scipy.signal", "dateutil", "pytz")
# What tests assign to without meaning the candidate: its prints come back into whatever these are.
HARMLESS = ("sys.stdout", "sys.stderr", "sys.path", "sys.dont_write_bytecode")


def of_package(module: str) -> str:
    """The reason why tests that import ``module`` need one process; empty when they do not."""
    top = module.partition(".")[0]
    if top in MODULES:
        return MODULES[top]
    of_python = top in sys.stdlib_module_names or top in _KEPT_APART or top.startswith("pytest_")
    if not top or top == "solution" or (of_python and not module.startswith(_NEVER_APART)):
        return ""
    return f"they use objects of {top}, which would be others in another process (import {module})"


def of_setter(path: str) -> str:
    """The reason why tests that call the function at ``path`` need one process; empty when they do not."""
    while path:
        if path in SETTERS:
            return SETTERS[path]
        path = path.rpartition(".")[0]
    return ""


def is_of_tests(path: str) -> bool:
    """Whether something at ``path`` is the tests' own to change."""
    top = path.partition(".")[0]
    return top in _KEPT_APART - {"numpy"} or top in ("unittest", "doctest") or f"{path}.".startswith(_HARMLESS_PATHS)


_HARMLESS_PATHS = tuple(f"{path}." for path in HARMLESS)
