"""The code of an answer that is still being written: what to show of it before anybody can say which block is best."""

from engine.selection.code_blocks import ASIDE, Fence, begun_without_fence, closes, lines_of, opening, quote_after


class GrowingCode:
    """All of an answer until the first block comes that is no shell command and no printed output; then that block.

    Looks at each line once. Which block answers the prompt is decided by ``code_blocks.solution`` when all is there.
    """

    def __init__(self) -> None:
        self._seen = 0  # characters of whole lines that were looked at
        self._fence: Fence | None = None
        self._begins, self._ends = 0, -1
        self._quote = ""  # a triple quote that is open: a fence inside a string closes nothing

    def span(self, answer: str) -> tuple[int, int]:
        """Where the code in ``answer`` begins and ends so far. ``answer`` goes on from what it was the last time."""
        for line in lines_of(answer[self._seen :]):
            if not line.endswith("\n") and self._seen + len(line) == len(answer):
                break  # more of it may come
            if self._ends < 0:
                self._look(answer, line)
            self._seen += len(line)
        if self._ends >= 0:
            return self._begins, self._ends
        may_be_a_fence = answer[self._seen :].lstrip()[:1] in ("`", "~")
        return self._begins, self._seen if may_be_a_fence else len(answer)

    def _look(self, answer: str, line: str) -> None:
        after = self._seen + len(line)
        if self._fence is None:
            fence = opening(line)
            if fence is not None and begun_without_fence(answer[:after]):
                self._begins, self._ends = 0, self._seen
            elif fence is not None:
                self._fence, self._quote = fence, ""
                self._begins = 0 if fence.language in ASIDE else after
        elif not self._quote and closes(line, self._fence):
            if self._fence.language not in ASIDE:
                self._ends = self._seen
            self._fence = None
        elif self._fence.may_hold_python:
            self._quote = quote_after(line, self._quote)
