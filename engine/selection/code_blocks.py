"""The code inside an answer, byte for byte as the model wrote it.

CommonMark's fence rules, with what answers of small models need besides. A CommonMark library is no help
here: it rewrites line endings, tabs and NUL, and it ends a block at a fence inside a Python docstring.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.selection.choice import BlockChoice, chosen, defines_something
from engine.selection.fences import MARKDOWN, PYTHON
from engine.selection.python_code import parse_python
from engine.selection.repairs import strings_in_json
from engine.selection.scanner import ScannedBlock, Scanner, scan
from engine.selection.unfenced import is_code, looks_like_code, python_in

__all__ = ["CodeBlock", "begun_without_fence", "block_of", "blocks", "parse_python", "solution"]

_WITHIN_A_LINE = re.compile(r"`+([^`\r\n]+)`+")


@dataclass(frozen=True)
class CodeBlock:
    """``language`` is what the fence names, in lower case, or empty; ``closed``: its closing fence was there.

    ``fenced`` False means that no fence marked the code; an empty ``code``, that the answer has none.
    """

    code: str
    language: str = ""
    closed: bool = True
    fenced: bool = True

    @property
    def maybe_python(self) -> bool:
        return not self.language or self.language in PYTHON


def blocks(answer: str) -> list[CodeBlock]:
    """Every fenced block outside of thoughts, in order, as it was written.

    A fence closes with at least as many ticks (or tildes) as it opened with, indented less than four columns
    further, and not inside an open triple-quoted string of Python. Ticks that can be no Python close it too, and
    where nothing else does, marks that were miscounted. Inside a list or a quotation, the columns and marks before
    the opening fence are taken off every line. A block that is never closed reaches to the end.
    """
    return [CodeBlock(found.code, found.fence.language, found.closed) for found in scan(answer).found]


def solution(answer: str) -> CodeBlock:
    """The code that answers the prompt: one block, or several that belong together.

    Thoughts are left out first. Of Python blocks: the first that defines a function or class, with those that it
    needs and that need it, since the rest is mostly an example of its use; unless a later block defines all of that
    again, as an improved version does. Of others: the longest. Shell commands and printed output count only when there
    is nothing else. Where no fence marks any definition, what parses as Python; its ``code`` is empty where there is
    nothing but prose.
    """
    if is_code(answer) and defines_something([BlockChoice(answer)]):  # whatever its strings hold
        return CodeBlock(answer, fenced=False)
    return _solution_of(answer, scan(answer))


def begun_without_fence(answer: str, scanner: Scanner) -> bool:
    """Whether code with a definition stands before the first fence, so that this ends it rather than begins it."""
    return defines_something(_bare(answer, scanner.outside))


def block_of(found: ScannedBlock) -> BlockChoice:
    """A block of an answer, for choosing among them."""
    return BlockChoice(found.code, found.fence.language, found.closed, found.caption)


def _solution_of(answer: str, scanner: Scanner) -> CodeBlock:
    found = [block_of(one) for one in scanner.found if one.code.strip()]
    spoken = scanner.outside
    if not found and not any(answer[begins:ends].strip() for begins, ends in spoken):
        return _end_of_thought(answer, scanner)
    if (inner := _in_json(found, "".join(answer[begins:ends] for begins, ends in spoken))) is not None:
        return inner
    if found:
        first = scanner.found[0]
        before = [span for span in spoken if span[1] <= first.begins]
        if not first.fence.language and defines_something(bare := _bare(answer, before)):
            return _unfenced(bare, answer, before)
    if not defines_something(found):
        bare = _bare(answer, spoken)
        if not found or defines_something(bare):
            return _unfenced(bare, answer, spoken)
    taken = chosen(found)
    assert taken is not None
    if taken.language in MARKDOWN and blocks(taken.code):
        return solution(taken.code)  # the answer came wrapped in a block of Markdown
    return CodeBlock(taken.code, taken.language, taken.closed)


def _in_json(found: list[BlockChoice], spoken: str) -> CodeBlock | None:
    """The code in an answer that is nothing but a JSON object, as a schema or a tool wants it."""
    if len(found) > 1 or (found and found[0].language not in ("", "json")):
        return None
    for text in strings_in_json(found[0].code if found else spoken):
        block = solution(text)
        if defines_something([BlockChoice(block.code)]):
            return block
    return None


def _bare(answer: str, spans: Iterable[tuple[int, int]]) -> list[BlockChoice]:
    """The Python in ``spans`` of the answer; where one does not go on from the one before, a new stretch begins."""
    texts: list[str] = []
    last = -1
    for begins, ends in spans:
        if begins == last:
            texts[-1] += answer[begins:ends]
        else:
            texts.append(answer[begins:ends])
        last = ends
    return [BlockChoice(code) for text in texts for code in python_in(text)]


def _unfenced(bare: list[BlockChoice], answer: str, spans: list[tuple[int, int]]) -> CodeBlock:
    if taken := chosen(bare):
        return CodeBlock(taken.code, fenced=False)
    spoken = answer[spans[0][0] : spans[-1][1]] if spans else ""
    if looks_like_code(spoken):
        return CodeBlock(spoken, fenced=False)
    within = (code for code in _WITHIN_A_LINE.findall(spoken) if defines_something([BlockChoice(code)]))
    return CodeBlock(next(within, ""), fenced=False)


def _end_of_thought(answer: str, scanner: Scanner) -> CodeBlock:
    """Where an answer is nothing but a thought, and that ends with a block, the model forgot to end the thought."""
    begins, ends = scanner.thought
    thought = answer[begins:ends]
    found = scan(thought, sees_thoughts=False).found
    if found and found[-1].fenced_off and not thought[found[-1].after :].strip():
        return CodeBlock(found[-1].code, found[-1].fence.language)
    return CodeBlock("", fenced=False)
