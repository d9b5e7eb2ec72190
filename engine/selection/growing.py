"""The code of an answer that is still being written: what to show of it before anybody can say which block is best."""

from engine.selection.choice import is_beside_the_point
from engine.selection.code_blocks import begun_without_fence, block_of
from engine.selection.fences import ASIDE, lines_of
from engine.selection.scanner import Scanner


class GrowingCode:
    """All of an answer until a block of code begins; then that block, or the one behind it if that holds only imports
    or tests. Nothing of a thought, no shell command, no printed output.

    Looks at each line once. Which blocks answer the prompt is decided by ``code_blocks.solution`` when all is there.
    """

    def __init__(self) -> None:
        self._scanner = Scanner()
        self._seen = 0  # characters of whole lines that were looked at
        self._begins, self._ends = 0, -1
        self._is_settled = False

    def span(self, answer: str) -> tuple[int, int]:
        """Where the code in ``answer`` begins and ends so far. ``answer`` goes on from what it was the last time."""
        for line in lines_of(answer[self._seen :]):
            if not line.endswith("\n") and self._seen + len(line) == len(answer):
                break  # more of it may come
            self._look(answer, line)
            self._seen += len(line)
        if self._ends >= 0:
            return self._begins, self._ends
        if self._scanner.thinks:
            return self._seen, self._seen
        may_be_a_mark = self._may_be_a_mark(answer[self._seen :].lstrip()[:1])
        return self._begins, max(self._begins, self._seen if may_be_a_mark else len(answer))

    def _may_be_a_mark(self, first: str) -> bool:
        """Whether a line that begins so may become a fence, or the mark of a thought."""
        return first in ("`", "~") or (first in ("<", "[", "◁") and self._scanner.fence is None)

    def _look(self, answer: str, line: str) -> None:
        scanner = self._scanner
        fence, known, restarts = scanner.fence, len(scanner.found), scanner.restarts
        scanner.take(line, self._seen)
        if scanner.restarts != restarts:
            known, self._ends, self._is_settled = 0, -1, False
            self._begins = scanner.outside[-1][0] if scanner.outside else self._seen + len(line)
        if self._is_settled:
            return
        for found in scanner.found[known:]:
            self._is_settled = self._is_settled or not is_beside_the_point(block_of(found))
            if found.fence.language not in ASIDE:
                self._begins, self._ends = found.begins, found.ends
            if self._is_settled:
                return
        if scanner.fence is not None and scanner.fence is not fence:
            self._block_begins(answer)

    def _block_begins(self, answer: str) -> None:
        scanner = self._scanner
        assert scanner.fence is not None
        if not scanner.found and not scanner.fence.language and begun_without_fence(answer, scanner):
            self._ends, self._is_settled = self._seen, True
        elif scanner.fence.language not in ASIDE:
            self._begins, self._ends = scanner.begins, -1
