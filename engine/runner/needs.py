"""Why some tests cannot be kept apart from the candidate, read from the test file alone.

Two boxes share no memory, no files and no module: tests that reach into the candidate's process need to be in it.
What a candidate is or does has no say in this.
"""

import ast
import sys
from collections.abc import Iterator

from engine.runner import forms, reasons


def same_process(source: forms.TestSource) -> str:
    """The reason, as the end of a sentence that begins with "because"; empty when two boxes will do."""
    if source.form in (forms.EXAMPLES, forms.COMMAND):
        return ""
    return next(_Reader(source).reasons(), "")


def libraries(tree: ast.Module) -> list[str]:
    """The modules that a file imports anywhere and that are neither Python's own nor the candidate's."""
    imported = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    names = (name for node in imported for name in _modules_of(node, members=False))
    own = (*sys.stdlib_module_names, forms.SOLUTION)
    return [name for name in names if name.partition(".")[0] not in own]


class _Reader:
    """Looks at each node of a test file.

    ``theirs``: what the tests call things of the candidate; ``modules``: names that an import binds; ``paths``: where
    a name's value is defined, such as ``numpy`` for ``np``.
    """

    def __init__(self, source: forms.TestSource):
        self.tree = source.tree
        self.theirs = set(source.borrowed) | _imported_names(source.tree)
        bound = {name: path for name, path in _paths(source.tree) if name not in self.theirs}
        own = _own_names(source.tree)
        self.modules = set(bound)
        self.paths = {name: path for name, path in bound.items() if name not in own}

    def reasons(self) -> Iterator[str]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.AsyncFunctionDef | ast.Await):
                yield "they run coroutines of the candidate (async)"
            elif isinstance(node, ast.FunctionDef):
                arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                yield from (reasons.FIXTURES[a.arg] for a in arguments if a.arg in reasons.FIXTURES)
                yield from self._decorators(node)
            elif isinstance(node, ast.ClassDef):
                yield from self._decorators(node)
                if any(_is_of(base, self.theirs) for base in node.bases):
                    yield f"they derive a class from the candidate's (class {node.name})"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                yield from filter(None, map(reasons.of_package, _modules_of(node)))
            elif isinstance(node, ast.Call):
                yield from self._calls(node)
            else:
                yield from self._assignments(node)

    def _decorators(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if "patch" in self._path(called).split("."):
                yield reasons.FUNCTIONS["patch"]
            if ast.unparse(called).endswith("usefixtures") and isinstance(decorator, ast.Call):
                wanted = (arg.value for arg in decorator.args if isinstance(arg, ast.Constant))
                yield from (reasons.FIXTURES[str(name)] for name in wanted if name in reasons.FIXTURES)

    def _calls(self, node: ast.Call) -> Iterator[str]:
        """Functions count by name when they are Python's or a module's, not the candidate's own of the same name."""
        written = ast.unparse(node.func).split(".")
        path = self._path(node.func).split(".")
        name = next((part for part in path if part in ("patch", "MonkeyPatch")), path[-1])
        if written[0] in self.theirs or (len(written) > 1 and written[0] not in self.modules):
            name = ""
        if (
            name in reasons.FUNCTIONS
            and not (name == "issubclass" and not _deep(node))
            and not self._is_own(node, name)
        ):
            yield reasons.FUNCTIONS[name]
        if written[-1] in reasons.METHODS:
            yield reasons.METHODS[written[-1]]
        if written[0] in self.modules and (reason := reasons.of_setter(".".join(path))):
            yield reason
        if name in ("setattr", "delattr") and len(node.args) > 1:
            attribute = ast.literal_eval(node.args[1]) if _is_text(node.args[1]) else "..."
            yield from self._replaced(f"{self._root(node.args[0])}.{attribute}")
        if name == "type" and len(node.args) == 3 and any(_mentions(part, self.theirs) for part in node.args[1:2]):
            yield "they derive a class from the candidate's (type)"
        if name == "import_module" or written == ["__import__"]:
            yield from filter(None, (reasons.of_package(ast.literal_eval(a)) for a in node.args[:1] if _is_text(a)))

    def _is_own(self, node: ast.Call, name: str) -> bool:
        """Whether ``setattr`` and ``delattr`` are about something of the tests' own."""
        return name in ("setattr", "delattr") and bool(node.args) and not _is_of(node.args[0], self.theirs)

    def _assignments(self, node: ast.AST) -> Iterator[str]:
        for target in _targets(node):
            for part in ast.walk(target):
                if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
                    yield from self._replaced(self._root(part))

    def _replaced(self, path: str) -> Iterator[str]:
        """The reason when something of a module at ``path`` is replaced or set."""
        if path and not path.startswith(".") and not reasons.is_of_tests(path):
            yield f"they replace things in the candidate's process ({path})"

    def _path(self, node: ast.expr) -> str:
        """``np.random.seed`` as numpy.random.seed; text that is no chain of names as it is written."""
        first, dot, rest = ast.unparse(node).partition(".")
        return f"{self.paths.get(first, first)}{dot}{rest}"

    def _root(self, node: ast.expr) -> str:
        """Where a chain of attributes and items begins in a module; empty when it does not."""
        names: list[str] = []
        while True:
            if isinstance(node, ast.Attribute):
                names.insert(0, node.attr)
                node = node.value
            elif isinstance(node, ast.Subscript):
                node = node.value
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "vars" and node.args:
                node = node.args[0]
            else:
                break
        if not isinstance(node, ast.Name) or node.id not in self.paths:
            return ""
        return ".".join([self.paths[node.id], *names])


def _paths(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name that stands for a module, or for something of one, and what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                (a.asname or a.name.partition(".")[0], a.name if a.asname else a.name.partition(".")[0])
                for a in node.names
            )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)
    yield from _loaded(tree)


def _own_names(tree: ast.Module) -> set[str]:
    """Names that are variables somewhere, and may be so where something is assigned to their parts."""
    names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return names - {name for name, _ in _loaded(tree)}


def _loaded(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Variables that hold a module: ``r = importlib.import_module("random")`` and what it loads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args:
            called, first = ast.unparse(node.value.func).rpartition(".")[2], node.value.args[0]
            if called in ("import_module", "__import__") and _is_text(first):
                yield from ((t.id, ast.literal_eval(first)) for t in node.targets if isinstance(t, ast.Name))


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement gives a new value to, or takes away."""
    if isinstance(node, ast.Assign | ast.Delete):
        return list(node.targets)
    if isinstance(node, ast.AugAssign | ast.For) or (isinstance(node, ast.AnnAssign) and node.value is not None):
        return [node.target]
    if isinstance(node, ast.With):
        return [item.optional_vars for item in node.items if item.optional_vars is not None]
    return []


def _modules_of(node: ast.Import | ast.ImportFrom, members: bool = True) -> list[str]:
    """``members``: also what is imported from a module, for it may be one as well."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level or not node.module:
        return []
    return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names if members)]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _deep(node: ast.Call) -> bool:
    """Whether ``issubclass`` asks for something other than an exception or ``object``."""
    second = ast.unparse(node.args[1]) if len(node.args) == 2 else ""
    return not second.endswith(("Error", "Exception", "Warning", "object", "Exit", "Interrupt"))


def _imported_names(tree: ast.Module) -> set[str]:
    """What the tests call things of the candidate: names imported from it, and the module itself."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == forms.SOLUTION:
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == forms.SOLUTION}
    return names


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _is_of(node: ast.expr, names: set[str]) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in names
