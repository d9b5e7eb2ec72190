"""Why some tests cannot be kept apart from the candidate, read from the test file alone.

Two boxes share no memory, no files and no module: tests that reach into the candidate's process need to be in it.
What a candidate is or does has no say in this.
"""

import ast
from collections.abc import Iterator

from engine.runner import forms

_FIXTURES = {
    "monkeypatch": "they replace things in the candidate's process (monkeypatch)",
    "mocker": "they replace things in the candidate's process (mocker)",
    "tmp_path": "they share files with the candidate (tmp_path)",
    "tmp_path_factory": "they share files with the candidate (tmp_path_factory)",
    "tmpdir": "they share files with the candidate (tmpdir)",
    "caplog": "they look at the candidate's log (caplog)",
}
_MODULES = {
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
_FUNCTIONS = {
    "patch": "they replace things in the candidate's process (patch)",
    "open": "they share files with the candidate (open)",
    "chdir": "they change the candidate's folder (chdir)",
    "reload": "they import the candidate again (reload)",
    "setrecursionlimit": "they change the candidate's interpreter (setrecursionlimit)",
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
_METHODS = {
    "write_text": "they share files with the candidate (write_text)",
    "write_bytes": "they share files with the candidate (write_bytes)",
    "read_text": "they share files with the candidate (read_text)",
    "assertLogs": "they look at the candidate's log (assertLogs)",
    "assertNoLogs": "they look at the candidate's log (assertNoLogs)",
}
_OF_THE_PROCESS = ("os.environ", "sys.stdin", "sys.argv", "sys.modules")


def same_process(source: forms.TestSource) -> str:
    """The reason, as the end of a sentence that begins with "because"; empty when two boxes will do."""
    if source.form in (forms.EXAMPLES, forms.COMMAND):
        return ""
    return next(_reasons(source), "")


def _reasons(source: forms.TestSource) -> Iterator[str]:
    theirs = set(source.borrowed) | _imported_names(source.tree)
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    } - theirs
    for node in ast.walk(source.tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield "they run coroutines of the candidate (async)"
        elif isinstance(node, ast.FunctionDef):
            yield from (_FIXTURES[a.arg] for a in (*node.args.args, *node.args.kwonlyargs) if a.arg in _FIXTURES)
            yield from _decorators(node)
        elif isinstance(node, ast.ClassDef):
            yield from _decorators(node)
            if any(_is_of(base, theirs) for base in node.bases):
                yield f"they derive a class from the candidate's (class {node.name})"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node)
        elif isinstance(node, ast.Call):
            yield from _calls(node, theirs, modules)
        else:
            yield from _assignments(node)


def _decorators(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        name = ast.unparse(decorator).partition("(")[0]
        if "patch" in name.split("."):
            yield _FUNCTIONS["patch"]
        if name.endswith("usefixtures") and isinstance(decorator, ast.Call):
            wanted = (arg.value for arg in decorator.args if isinstance(arg, ast.Constant))
            yield from (_FIXTURES[str(fixture)] for fixture in wanted if fixture in _FIXTURES)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    for module in modules:
        if module.partition(".")[0] in _MODULES:
            yield _MODULES[module.partition(".")[0]]


def _calls(node: ast.Call, theirs: set[str], modules: set[str]) -> Iterator[str]:
    """Functions count by name when they are Python's or a module's, not the candidate's own of the same name."""
    path = ast.unparse(node.func).split(".")
    name = "patch" if "patch" in path else path[-1]
    if path[0] in theirs or (len(path) > 1 and path[0] not in modules):
        name = ""
    if name in _FUNCTIONS and not (name == "issubclass" and not _deep(node)) and not _of_own(node, name, theirs):
        yield _FUNCTIONS[name]
    if path[-1] in _METHODS:
        yield _METHODS[path[-1]]
    if path[:2] == ["os", "environ"] and path[-1] in ("update", "setdefault", "pop", "clear"):
        yield "they change the candidate's environment (os.environ)"


def _of_own(node: ast.Call, name: str, theirs: set[str]) -> bool:
    """Whether ``setattr`` and ``delattr`` are about something of the tests' own."""
    return name in ("setattr", "delattr") and bool(node.args) and not _is_of(node.args[0], theirs)


def _deep(node: ast.Call) -> bool:
    """Whether ``issubclass`` asks for something other than an exception or ``object``."""
    second = ast.unparse(node.args[1]) if len(node.args) == 2 else ""
    return not second.endswith(("Error", "Exception", "Warning", "object", "Exit", "Interrupt"))


def _assignments(node: ast.AST) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
    for target in targets:
        name = ast.unparse(target)
        if name.startswith(_OF_THE_PROCESS):
            yield f"they change the candidate's environment ({name.partition('[')[0]})"


def _imported_names(tree: ast.Module) -> set[str]:
    """What the tests call things of the candidate: names imported from it, and the module itself."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == forms.SOLUTION:
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == forms.SOLUTION}
    return names


def _is_of(node: ast.expr, names: set[str]) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in names
