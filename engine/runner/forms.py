"""How a user's tests are written, found out without running a line of them.

A *script* of bare asserts, whose top-level checks are one test each; a *pytest* file (functions, classes, unittest);
``def check(candidate)`` as HumanEval has it; a *doctest*; *examples* of input and output; *commands*, one a line.
Used by the service and, inside the box, by the plugin; the standard library only.
"""

import __future__

import ast
import builtins
import doctest
import keyword
import re
import symtable
from dataclasses import dataclass, replace
from typing import Any

from engine.runner import checks, pasted
from engine.runner.checks import SOLUTION as SOLUTION
from engine.runner.checks import Check as Check
from engine.runner.pasted import FILE as FILE

CANARIES = "canaries.py"
SCRIPT, PYTEST, CHECK, DOCTEST, EXAMPLES, COMMAND = "script", "pytest", "check", "doctest", "examples", "command"
CHECKER = "check"  # the function of the form CHECK
NO_TEST = "Your tests hold no test: write top-level asserts, or functions named test_..."
LONGEST = 4 << 20  # characters of a test file, or of a candidate
_SECTION = re.compile(
    r"^(?=sample[ \t]|example[ \t]|.*:[ \t]*$)"  # a word that stands alone may be what a program prints
    r"(?:(?:sample|example)[ \t]+)?(input|output)(?:[ \t]*\#?\d+)?[ \t]*:?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_VALUES = re.compile(
    r"(?:(?:example )?(?:input|output)[ \t]*:.*\S|[\w.]+\(.*\)[ \t]*(?:->|=>|→|⇒|➞)[ \t]*\S)", re.IGNORECASE
)
_ONLY_VALUES = (
    "Your tests say what goes in and what comes out, but not in Python: write a line such as assert add(2, 3) == 5 for "
    "each, or, for a program, input: and output: on lines of their own with the text below them."
)
_MOST_LOOKED_UP = 500  # names that are asked for because a string mentions them
_LOOKED_UP = frozenset(("eval", "exec", "globals", "locals", "vars"))  # with them a name may stand in a string


class BrokenTests(Exception):
    """The test file cannot be used; the text says why and where."""


@dataclass(frozen=True)
class Example:
    """What a script gets on standard input, and what it must print."""

    given: str
    wanted: str


@dataclass(frozen=True)
class TestSource:
    """A test file that parses. ``form`` is one of the six; ``checks`` is empty in a pytest file.

    ``borrowed``: names that the tests use and define nowhere, to be taken from the candidate. Only these are
    taken, and never a built-in's name, so that a candidate cannot put its own ``all`` into the tests.
    ``builtins``: the built-in names that the tests use; ``imports``: they name what they want of the candidate.
    ``examples``: of a doctest, of input and output, or commands; a check's index counts them. ``future``: the
    compiler's flags for what the tests import from ``__future__``. ``listed``: only pytest can tell, by loading it,
    whether there are tests in it; ``form`` and ``checks`` are then what it is if there are none.
    """

    form: str
    text: str
    tree: ast.Module
    checks: tuple[Check, ...]
    borrowed: tuple[str, ...]
    builtins: tuple[str, ...]
    imports: bool
    examples: tuple[Any, ...] = ()
    future: int = 0
    listed: bool = False

    def as_pytest(self) -> "TestSource":
        """A file of Python in which pytest is to find the tests, or has found some."""
        return replace(self, form=PYTEST, checks=(), listed=False)

    def as_script(self) -> "TestSource":
        """A file of Python in which pytest found no test. Raises BrokenTests where it is no script either."""
        found = tuple(checks.script_checks(self.tree))
        return replace(self, form=SCRIPT, checks=found, listed=False) if found else parse(self.text, SCRIPT)

    def to_data(self) -> dict[str, Any]:
        """For JSON, so that a box need not find out again how these tests are written. The tree goes as its text."""
        data = {name: value for name, value in vars(self).items() if name not in ("tree", "checks", "examples")}
        examples = [each if isinstance(each, str) else vars(each) for each in self.examples]
        return {**data, "checks": [vars(check) for check in self.checks], "examples": examples}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "TestSource":
        """What ``to_data`` gave, also after it has been JSON."""
        examples = tuple(_example(data["form"], each) for each in data["examples"])
        text = "".join(each.source for each in examples) if data["form"] == DOCTEST else data["text"]
        tree = ast.Module([], []) if data["form"] in (EXAMPLES, COMMAND) else ast.parse(text, FILE)
        if data["form"] in (SCRIPT, CHECK, PYTEST):
            _replace_star_import(tree)
        found = tuple(Check(**check) for check in data["checks"])
        names = {name: tuple(data[name]) for name in ("borrowed", "builtins")}
        return cls(**{**data, **names, "tree": tree, "checks": found, "examples": examples})


def parse(text: str, form: str = "") -> TestSource:
    """Raises BrokenTests when ``text`` does not parse or holds no test.

    ``form``: PYTEST or SCRIPT takes a file of Python for that, whatever is in it.
    """
    if len(text) > LONGEST:
        raise BrokenTests(f"Your tests are longer than {LONGEST >> 20} million characters; keep them shorter.")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "").strip()
    if first.startswith("$ "):
        return _commands(text)
    if _SECTION.fullmatch(first):
        return _examples(text)
    try:
        return _python(text, form)
    except BrokenTests:
        if pasted.has_prompts(text):
            return _doctest(text)
        if inside := pasted.between_fences(text):
            return parse(inside, form)
        raise


def _python(text: str, form: str) -> TestSource:
    tree, free, of_python = _parsed(text)
    if sentence := checks.always_true(tree):
        raise BrokenTests(f"Your tests cannot fail: {sentence}.")
    listed = not form and checks.may_define_tests(tree)
    found: tuple[Check, ...] = ()
    if not form and _is_checker(tree) and not checks.defines_tests(tree):
        form, found, listed = CHECK, (Check(f"{CHECKER}(candidate)", len(tree.body) - 1),), False
    elif not form:
        form = PYTEST if checks.defines_tests(tree) else SCRIPT
    if form == SCRIPT:
        found = tuple(checks.script_checks(tree))
        if not found and not listed:
            raise BrokenTests(NO_TEST)
    star = _replace_star_import(tree)
    imports = any(_imports_solution(node) for node in ast.walk(tree))
    borrowed = free if star or not imports else ()
    return TestSource(form, text, tree, found, borrowed, of_python, imports, future=_future(tree), listed=listed)


def _parsed(text: str) -> tuple[ast.Module, tuple[str, ...], tuple[str, ...]]:
    """The tree, the names that are used and defined nowhere, and the built-in ones among those used."""
    try:
        tree = ast.parse(text, FILE)
        return tree, *_free_names(symtable.symtable(text, FILE, "exec"), _in_strings(tree))
    except SyntaxError as error:
        if _VALUES.match((error.text or "").strip()):
            raise BrokenTests(_ONLY_VALUES) from None
        line = f"line {error.lineno}: " if error.lineno else ""
        raise BrokenTests(f"Your tests do not parse: {line}{error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BrokenTests(f"Your tests do not parse: {error}.") from None


def _future(tree: ast.Module) -> int:
    flags = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
    return flags


def _is_checker(tree: ast.Module) -> bool:
    """``def check(candidate)`` that nobody calls, as HumanEval writes its tests."""
    defined = any(isinstance(s, ast.FunctionDef) and s.name == CHECKER and len(s.args.args) == 1 for s in tree.body)
    called = any(isinstance(node, ast.Call) and checks.called(node) == CHECKER for node in ast.walk(tree))
    return defined and not called


def _doctest(text: str) -> TestSource:
    try:
        examples = pasted.examples(text)
    except ValueError as error:
        raise BrokenTests(f"Your doctest does not parse: {error}.") from None
    tree, free, of_python = _parsed("".join(example.source for example in examples))
    checks = tuple(Check(f"line {e.lineno + 1}", i) for i, e in enumerate(examples) if e.want)
    if not checks:
        raise BrokenTests("Your doctest says nowhere what should come out; write it below the line with >>>.")
    imports = any(_imports_solution(node) for node in ast.walk(tree))
    return TestSource(DOCTEST, text, tree, checks, () if imports else free, of_python, imports, tuple(examples))


def _example(form: str, data: Any) -> Any:
    """One of a TestSource's ``examples``, as ``to_data`` wrote it."""
    if form == EXAMPLES:
        return Example(**data)
    if form != DOCTEST:
        return data
    options = {int(flag): on for flag, on in data["options"].items()}  # JSON has made words of the numbers
    return doctest.Example(**{**data, "options": options})


def _examples(text: str) -> TestSource:
    """Sections ``input:`` and ``output:`` in turn, with numbers or words before them, as sites of problems have it."""
    pieces = _SECTION.split(text)
    names, bodies = [name.lower() for name in pieces[1::2]], pieces[2::2]
    if names[::2] != ["input"] * len(names[::2]) or names[1::2] != ["output"] * len(names[::2]):
        raise BrokenTests("Every section input: needs one section output: after it.")
    sections = [body.removeprefix("\n") for body in bodies]
    found = tuple(map(Example, sections[::2], sections[1::2]))
    return _other(EXAMPLES, text, [f"example {n}" for n in range(1, len(found) + 1)], found)


def _commands(text: str) -> TestSource:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    wrong = next((line for line in lines if not line.startswith("$ ")), None)
    if wrong is not None:
        raise BrokenTests(f"Every line of a list of commands begins with a dollar sign; this one does not: {wrong}")
    commands = tuple(line.removeprefix("$ ").strip() for line in lines)
    return _other(COMMAND, text, list(commands), commands)


def _other(form: str, text: str, names: list[str], examples: tuple[Any, ...]) -> TestSource:
    checks = tuple(Check(name, index) for index, name in enumerate(names))
    return TestSource(form, text, ast.Module([], []), checks, (), (), True, examples)


def _free_names(top: symtable.SymbolTable, mentioned: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names that are used and defined nowhere, and built-in ones among those used.

    ``mentioned``: words in strings, which count where strings may be evaluated.
    """
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    used: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or table is top):
                used.add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                own.add(symbol.get_name())
    of_python = set(dir(builtins))
    helpers = {name for name in (used - own) & of_python if not name.startswith("__")}
    if used & _LOOKED_UP:
        used |= mentioned
    return tuple(sorted(used - own - of_python - {"__file__"})), tuple(sorted(helpers))


def _in_strings(tree: ast.Module) -> set[str]:
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    found = {word for text in texts for word in re.findall(r"[^\W\d]\w*", text) if not keyword.iskeyword(word)}
    return found if len(found) <= _MOST_LOOKED_UP else set()


def _imports_solution(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == SOLUTION
    return isinstance(node, ast.Import) and any(alias.name == SOLUTION for alias in node.names)


def _replace_star_import(tree: ast.Module) -> bool:
    """``from solution import *`` becomes a ``pass``: the names it is there for are borrowed instead."""
    found = False
    for node in ast.walk(tree):
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(body, list):
                continue
            for index, inner in enumerate(body):
                if isinstance(inner, ast.ImportFrom) and inner.module == SOLUTION and inner.names[0].name == "*":
                    body[index] = ast.copy_location(ast.Pass(), inner)
                    found = True
    return found
