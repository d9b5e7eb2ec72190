"""A loop's pieces are each done once and waited for, whoever does them."""

import ctypes
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from llvmlite import ir

from kernels import llvm
from kernels.llvm import LONG, POINTER, SHARED, CompiledModule, FunctionBody, long
from kernels.once import once
from kernels.thread_pool import thread_pool

pytestmark = pytest.mark.skipif(bool(llvm.why_not()), reason=llvm.why_not() or "compiled")


def tallies(turns: int):
    """``tally(places, pieces)``: every piece takes so many turns, each of which adds 1 to the piece's own place."""
    module = ir.Module("tallies")
    body = FunctionBody(module, "one", SHARED)
    (places,) = body.received([POINTER])
    place = body.address(places, body.parameters[1], LONG)
    with body.loop(long(0), long(turns)):
        body.at.atomic_rmw("add", place, long(1), "seq_cst")  # which no optimiser makes one of
    body.at.ret_void()
    body = FunctionBody(module, "tally", [POINTER, LONG])
    body.share_out("one", [body.parameters[0]], body.parameters[1])
    body.at.ret_void()
    thread_pool()
    return CompiledModule(module).function("tally", ctypes.c_void_p, ctypes.c_int64)


def run(tally, pieces: int) -> Counter:
    places = (ctypes.c_int64 * max(pieces, 1))()
    tally(ctypes.addressof(places), pieces)
    return Counter(places)


@pytest.mark.parametrize("pieces", [1, 2, 3, 8, 64, 1000])
def test_every_piece_is_done_once(pieces):
    tally = tallies(10)
    for _ in range(200):
        thread_pool().wake()
        assert run(tally, pieces) == {10: pieces}


def test_two_callers_at_once():
    """One of them has the helpers, the other does its pieces alone."""
    tally, found = tallies(200), []

    def call() -> None:
        for _ in range(300):
            thread_pool().wake()
            found.append(run(tally, 16))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert found == [{200: 16}] * 900


def test_no_pieces_at_all():
    """Also for a caller that finds another one offering: it would divide its turns by no pieces."""
    tally, done = tallies(2000), threading.Event()
    worker = threading.Thread(target=lambda: [run(tally, 16) for _ in range(300)] and done.set())
    worker.start()
    while not done.is_set():
        assert run(tally, 0) == {0: 1}
    worker.join(60)


def test_two_threads_that_want_the_team_at_once_get_the_same():
    made, gate = [], threading.Barrier(4)

    @once
    def make():
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    found = []

    def ask() -> None:
        gate.wait(10)
        found.append(make())

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(10)
    assert found == made * 4


def test_nobody_waits_for_a_helper_that_sleeps():
    tally, helpers = tallies(10), thread_pool()
    deadline = time.monotonic() + 10
    while len(helpers._asleep) < helpers.helpers and time.monotonic() < deadline:
        time.sleep(0.01)  # they fall asleep by themselves
    assert len(helpers._asleep) == helpers.helpers
    assert run(tally, 32) == {10: 32}  # without ``wake``
    assert len(helpers._asleep) == helpers.helpers


def test_helpers_end_with_the_program():
    """Also when one of them is looking for work at that very moment."""
    script = (
        "import torch\n"
        "from kernels.elementwise import silu\n"
        "for _ in range(50): silu(torch.randn(64, 4096))\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
