"""Which blocks of an answer are its solution, and how they go together.

The first definition counts, and what belongs to it: steps that need each other are joined, a later version replaces an
earlier one, and what only shows or checks the code is left out.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engine.selection.fences import ASIDE, MARKDOWN, PYTHON, lines_of
from engine.selection.languages import EXTENSIONS
from engine.selection.python_code import PythonCode, parse_python
from engine.selection.repairs import new_side, replaced, without_entities, without_numbers
from engine.selection.unfenced import dedented, python_in, typed_in

_MOST_BLOCKS = 200  # more than that are no steps of one answer
# In the languages models answer in most: what stands above a block says what it is there for.
_NOT_FOR_USE = re.compile(
    r"\b(?:wrong|incorrect|bad|buggy)\s+(?:way|version|example|code|implementation|solution|approach)\b"
    r"|\b(?:don'?t|do not|never)\s+(?:do|write|use)\b|\bcommon (?:mistake|error|pitfall)"
    r"|\bfalsche[rsn]?\s+(?:weg|fassung|version|code|lösung|beispiel|ansatz|variante)\b"
    r"|\b(?:häufige|typische|verbreitete)r? fehler\b|\b(?:so nicht|nicht so)\b"
    r"|\b(?:forma|manera|versión|código|solución|ejemplo|versão|solução|exemplo)\s+(?:incorrect|incorret|errad|erróne)[ao]"
    r"|\berr(?:or común|o comum|eur (?:courante|fréquente))\b|\b(?:mauvaise?|incorrecte?)\s+(?:façon|version|exemple)\b"
    r"|错误(?:的)?(?:写法|做法|示例|例子|代码|版本|方法|实现|用法)|反例|不要这样|常见错误|悪い例|間違った例|よくある間違い"
    r"|неправильн\w+ (?:вариант|пример|код|способ|решение)",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"\b(?:alternativ\w*|another|instead|option|autre|otra|outra|другой|иначе)\b|另一种|其他方法|替代|或者|別解|別の方法",
    re.IGNORECASE,
)
_SHOWS_USE = re.compile(
    r"\b(?:examples?|usage|use (?:it|this)|tests?|try|demo|for instance|call (?:it|this)|output|run (?:it|this)"
    r"|beispiel\w*|verwendung|aufruf|ausgabe|exemples?|utilisation|ejemplos?|uso|salida|exemplos?|saída"
    r"|пример\w*|использовани\w+|тест\w*|вывод)\b|示例|例子|用法|使用方法|测试|输出|使い方|使用例|テスト|出力",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class BlockChoice:
    """One block of an answer. ``caption``: the line of prose before it."""

    code: str
    language: str = ""
    closed: bool = True
    caption: str = ""

    @property
    def maybe_python(self) -> bool:
        """A fence that names another language is believed; one that names none that is known is not."""
        return (
            not self.language
            or self.language in PYTHON
            or (self.language not in EXTENSIONS and self.language not in MARKDOWN)
        )


@dataclass(frozen=True, eq=False)
class _Part:
    block: BlockChoice
    python: PythonCode


def is_beside_the_point(block: BlockChoice) -> bool:
    """What nobody asked for as such: shell commands, printed output, imports alone, tests of what is yet to come."""
    if block.language in ASIDE or not block.code.strip():
        return True
    python = PythonCode.of(block.code) if block.maybe_python else None
    return python is not None and (python.is_imports or python.is_tests)


def defines_something(blocks: Iterable[BlockChoice]) -> bool:
    return any(part.python.definitions and not part.python.is_tests for part in _parsed(blocks))


def chosen(blocks: Sequence[BlockChoice]) -> BlockChoice | None:
    """The solution that these blocks make, as one block; None when none of them has code."""
    found = [block for block in blocks if block.code.strip()][:_MOST_BLOCKS]
    parts = _of_one_file(_parsed(found) or _parsed(map(_patched, found)))
    if solution := _steps(parts):
        return _joined(_completed(solution, parts))
    found = [block for block in found if block.language not in ASIDE] or found
    named = [block for block in found if block.language in PYTHON]
    if begun := next(
        (b for b in named or found if b.maybe_python and re.search(r"^\s*(?:def|class) \w", b.code, re.M)), None
    ):
        return begun  # broken, or a class's method: still what was asked for
    if script := _script([part for part in parts if part.block.language in PYTHON] or ([] if named else parts)):
        return _joined(script)
    return max(named or found, key=lambda block: len(block.code), default=None)


def _parsed(blocks: Iterable[BlockChoice]) -> list[_Part]:
    """Those blocks that are Python, as they stand or by a small repair; a class that goes on in a later block."""
    parts: list[_Part] = []
    for block in blocks:
        if not block.maybe_python or not block.code.strip() or block.language in ("bash", "sh", "shell", "diff"):
            continue
        python = None if without_entities(block.code) else PythonCode.of(block.code)
        if python is None and parts and block.code[:1] in (" ", "\t"):
            longer = _ended(parts[-1].block.code) + "\n" + block.code
            if python := PythonCode.of(longer):
                parts[-1] = _Part(replace(parts[-1].block, code=longer), python)
                continue
        if python is None:
            block, python = _repaired(block)
        is_named = not block.language or block.language in PYTHON
        if python is not None and (is_named or (python.definitions and not python.is_tests)):
            parts.append(_Part(block if is_named else replace(block, language="python"), python))
    return parts


def _repaired(block: BlockChoice) -> tuple[BlockChoice, PythonCode | None]:
    """Code that stands too far in, is a transcript, or is written as something else."""
    versions = [without_entities(block.code), block.code, "".join(dedented(lines_of(block.code)))]
    versions += [typed_in(block.code), without_numbers(block.code), replaced(block.code)]
    if not block.closed:
        versions.append("\n".join(python_in(block.code)))  # prose follows, and no fence between
    for version in versions:
        if version.strip() and (python := PythonCode.of(version)):
            return replace(block, code=version), python
    return block, None


def _patched(block: BlockChoice) -> BlockChoice:
    """A diff as the code that it leads to."""
    is_diff = block.language in ("", "diff", "patch")
    return BlockChoice(new_side(block.code), "python", block.closed, block.caption) if is_diff else block


def _of_one_file(parts: list[_Part]) -> list[_Part]:
    """Where code in one block imports what another defines, as in files of their own, the import is not needed."""
    merged = list(parts)
    for at, part in enumerate(parts):
        python = part.python
        shows = python.is_tests or python.is_demonstration or _SHOWS_USE.search(part.block.caption)
        if shows or not python.definitions or not python.only_defines:
            continue
        code = python.without_imports_of(_union(p.python.definitions for p in parts if p is not part))
        if code != part.block.code and (shorter := PythonCode.of(code)):
            merged[at] = _Part(replace(part.block, code=code), shorter)
    return merged


def _steps(parts: Sequence[_Part]) -> list[_Part]:
    """The blocks with the definitions that answer the prompt."""
    defining = [part for part in parts if part.python.definitions]
    defining = [part for part in defining if not _imports_from(part, defining)] or defining
    steps: list[_Part] = []
    for part in [p for p in defining if not p.python.is_tests and not p.python.is_demonstration]:
        steps = _with(steps, part)
    if not steps:  # nothing but what is called main, or tests: then these were asked for
        for part in [p for p in defining if not p.python.is_tests] or defining:
            steps = _with(steps, part)
        return steps
    for part in defining:
        if part.python.is_demonstration and not part.python.is_tests and _is_program(part, steps):
            steps.append(part)
    return steps


def _with(steps: list[_Part], part: _Part) -> list[_Part]:
    """The steps so far and one more block: a version of what is there, a further step, or none."""
    if not steps:
        return [part]
    python, defined = part.python, _union(step.python.definitions for step in steps)
    if _NOT_FOR_USE.search(part.block.caption):
        return steps
    again = python.definitions & defined
    if again:
        if again & python.stubs:
            return steps  # only reminds of what is there
        whole = "\n".join(_ended(step.block.code) for step in steps)
        roots = (PythonCode.of(whole) or python).roots or defined
        if roots <= python.definitions and not python.needs & defined:
            return [*(step for step in steps if _gives(step, python.needs)), part]
        kept = (s for s in steps if not s.python.definitions <= python.definitions or _gives(s, python.needs))
        return [*kept, part]
    is_related = bool(python.needs & defined) or any(step.python.needs & python.definitions for step in steps)
    if is_related:
        return (
            steps
            if python.acts and not _is_program(part, steps) and _SHOWS_USE.search(part.block.caption)
            else [*steps, part]
        )
    is_further = (
        not python.acts and not _ALTERNATIVE.search(part.block.caption) and not _SHOWS_USE.search(part.block.caption)
    )
    return [*steps, part] if is_further else steps


def _imports_from(part: _Part, parts: Sequence[_Part]) -> bool:
    """It imports what other blocks of the same answer define: it uses them from another file."""
    others = _union(other.python.definitions for other in parts if other is not part)
    return any(names and names <= others for names in part.python.imports_by_module())


def _is_program(part: _Part, steps: Sequence[_Part]) -> bool:
    """Runs what the steps define on what it reads: the end of a program, and no example."""
    reads = part.python.reads_input or any(step.python.reads_input for step in steps)
    needed = part.python.needs & _union(step.python.binds for step in steps)
    return reads and bool(needed) and not _SHOWS_USE.search(part.block.caption)


def _gives(part: _Part, names: frozenset[str]) -> bool:
    return bool(part.python.binds & names)


def _completed(steps: list[_Part], parts: Sequence[_Part]) -> list[_Part]:
    """With the blocks that give the steps what they lack (imports, constants), and the end of a program."""
    taken = list(steps)
    while missing := _union(part.python.needs for part in taken) - _union(part.python.binds for part in taken):
        others = [part for part in parts if part not in taken and not part.python.is_tests and _gives(part, missing)]
        quiet = [part for part in others if not part.python.acts] or others
        if not quiet:
            break
        taken.append(quiet[0])
    for part in parts:
        if part not in taken and not part.python.definitions and not part.python.is_tests and _is_program(part, taken):
            taken.append(part)
    return sorted(taken, key=parts.index)


def _script(parts: Sequence[_Part]) -> list[_Part]:
    """Of code that defines nothing, the longest chain of blocks that need each other's names."""
    chains: list[list[_Part]] = []
    for part in parts:
        before = next((c for c in chains if part.python.needs & _union(p.python.binds for p in c)), None)
        if before is None:
            chains.append([part])
        else:
            before.append(part)
    chosen_chain = max(chains, key=lambda chain: sum(len(part.block.code) for part in chain), default=[])
    return _completed(chosen_chain, parts)


def _joined(parts: list[_Part]) -> BlockChoice:
    """All parts as one code that parses: in their order, but for what must be there before."""
    if len(parts) == 1:
        return parts[0].block
    ordered = _in_order(parts)
    named = next((part.block.language for part in ordered if part.block.language), "")
    code = "\n".join(_ended(part.block.code) for part in ordered[:-1]) + "\n" + ordered[-1].block.code
    if parse_python(code) is None:  # too long together
        return max(parts, key=lambda part: len(part.block.code)).block
    return BlockChoice(code, named, all(part.block.closed for part in parts))


def _in_order(parts: list[_Part]) -> list[_Part]:
    ordered = sorted(parts, key=lambda part: not part.python.wants_future)
    at = moves = 0
    while at < len(ordered) and moves < len(ordered) ** 2:
        known = _union(part.python.binds for part in ordered[:at])
        missing = ordered[at].python.needs_at_once - known
        later = next((n for n in range(at + 1, len(ordered)) if ordered[n].python.binds & missing), None)
        if later is None:
            at += 1
        else:
            ordered.insert(at, ordered.pop(later))
            moves += 1
    return ordered


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _ended(code: str) -> str:
    return code if code.endswith(("\n", "\r")) else code + "\n"
