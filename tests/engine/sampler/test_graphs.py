"""The graphs of a model: what happens to them where a capture fails."""

import pytest
import torch

from engine.models.room import Room
from engine.sampler.graphs import Graphs, Key

LACK = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
ROOM = Room(rows=2, slots=8, prompt=16)


class TestGraphs:
    @staticmethod
    def prepare(found, keys):
        found.prepare(keys, lambda tokens: tokens, lambda step, last_only: torch.zeros(step))

    def test_a_lack_of_memory_is_raised_and_the_graphs_stay_possible(self):
        errors = [None, LACK, None, None]

        def capture(work):
            if (error := errors.pop(0)) is not None:
                raise error
            return (lambda: None), work()

        found, keys = Graphs(capture), [Key(4, ROOM, False), Key(2, ROOM, False)]
        with pytest.raises(torch.OutOfMemoryError):
            self.prepare(found, keys)
        assert (found.are_on, found.reason) == (True, "")
        self.prepare(found, keys)  # what was captured before is captured again: it was let go to make room
        assert errors == []

    @pytest.mark.parametrize("error", [RuntimeError("asked\nmore"), ValueError(), PermissionError(13, "no")], ids=repr)
    def test_anything_else_means_that_there_are_none(self, error):
        def capture(work):
            raise error

        found = Graphs(capture)
        self.prepare(found, [Key(4, ROOM, False), Key(2, ROOM, False)])
        assert not found.are_on
        assert found.reason.startswith("The model cannot be captured as a graph (")
        assert len(found.reason.splitlines()) == 1
        assert "()" not in found.reason
        assert found.find(Key(4, ROOM, False), pytest.fail, pytest.fail) is None
