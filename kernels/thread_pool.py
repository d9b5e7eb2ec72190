"""Threads that share the pieces of a loop, and never wait for one that has not come.

OpenMP gives every thread its share. If its threads sleep between loops, each of the hundred products of a step waits
for one to wake, half of its time; if they spin, it waits for one that another process keeps off its core. Here pieces
are taken one by one by whoever is there: the caller works from the first on, others join when they are awake, and
nothing is waited for but a piece that somebody has begun.

A helper looks for work for a moment after the last of it, then sleeps in Python until the next call.
"""

import atexit
import ctypes
import sys
import threading
from contextlib import suppress

import torch
from llvmlite import binding, ir

from kernels import quota
from kernels.llvm import SHARE_OUT, CompiledModule
from kernels.once import once

MOST = 32  # threads, the caller's too: a step's loops are short and wait for memory, which far fewer cores keep busy
PIECES_EACH = 4  # of a loop, for every thread: what a late one has missed the others take
_PATIENCE = 500_000  # cycles that a helper looks for work: longer than torch takes between two loops of a step
_BOARD = 64  # int64; what is written by several lies 64 bytes apart, in lines of the cache of its own

# OPEN holds the number of the loop in its upper half, and in its lower the pieces that nobody has taken yet. One
# comparison takes a piece, so that a thread which slept through a loop's end never takes one of the next by mistake.
_CODE = """
declare i64 @llvm.readcyclecounter()
declare void @llvm.x86.sse2.pause()
declare i32 @bassline_yield()

define internal void @work(ptr %board) {{
entry:
  %done = getelementptr i64, ptr %board, i64 8
  %function.at = getelementptr i64, ptr %board, i64 32
  %fields.at = getelementptr i64, ptr %board, i64 33
  %pieces.at = getelementptr i64, ptr %board, i64 34
  br label %look
look:
  %open = load atomic i64, ptr %board seq_cst, align 8
  %left = and i64 %open, 4294967295
  %nothing = icmp eq i64 %left, 0
  br i1 %nothing, label %end, label %take
take:
  %fewer = sub i64 %open, 1
  %taken = cmpxchg ptr %board, i64 %open, i64 %fewer seq_cst seq_cst
  %mine = extractvalue {{ i64, i1 }} %taken, 1
  br i1 %mine, label %do, label %look
do:
  %function = load ptr, ptr %function.at
  %fields = load ptr, ptr %fields.at
  %pieces = load i64, ptr %pieces.at
  %piece = sub i64 %left, 1
  call void %function(ptr %fields, i64 %piece, i64 %pieces)
  %before = atomicrmw add ptr %done, i64 1 seq_cst
  br label %look
end:
  ret void
}}

; Work as long as there is some, and for {patience} cycles after.
define void @serve() {{
entry:
  %board = inttoptr i64 {board} to ptr
  %stop = getelementptr i64, ptr %board, i64 24
  %start = call i64 @llvm.readcyclecounter()
  br label %look
look:
  %since = phi i64 [ %start, %entry ], [ %since, %pause ], [ %now, %work ]
  %stopping = load atomic i64, ptr %stop seq_cst, align 8
  %go = icmp eq i64 %stopping, 0
  br i1 %go, label %board.look, label %end
board.look:
  %open = load atomic i64, ptr %board seq_cst, align 8
  %left = and i64 %open, 4294967295
  %nothing = icmp eq i64 %left, 0
  br i1 %nothing, label %pause, label %work
work:
  call void @work(ptr %board)
  %now = call i64 @llvm.readcyclecounter()
  br label %look
pause:
  call void @llvm.x86.sse2.pause()
  %later = call i64 @llvm.readcyclecounter()
  %waited = sub i64 %later, %since
  %enough = icmp ugt i64 %waited, {patience}
  br i1 %enough, label %end, label %look
end:
  ret void
}}

; Offer the pieces, take part, and wait for those that others have begun. Alone where there is one piece only, or where
; another thread is offering: the board is one engine's at a time, and what is alone touches none of it.
define void @share_out(ptr %function, ptr %fields, i64 %pieces) {{
entry:
  %board = inttoptr i64 {board} to ptr
  %done = getelementptr i64, ptr %board, i64 8
  %busy = getelementptr i64, ptr %board, i64 16
  %few = icmp sle i64 %pieces, 1
  br i1 %few, label %alone, label %claim
claim:
  %claimed = cmpxchg ptr %busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue {{ i64, i1 }} %claimed, 1
  br i1 %free, label %offer, label %alone
offer:
  %function.at = getelementptr i64, ptr %board, i64 32
  %fields.at = getelementptr i64, ptr %board, i64 33
  %pieces.at = getelementptr i64, ptr %board, i64 34
  store ptr %function, ptr %function.at
  store ptr %fields, ptr %fields.at
  store i64 %pieces, ptr %pieces.at
  store atomic i64 0, ptr %done seq_cst, align 8
  %last = load atomic i64, ptr %board seq_cst, align 8
  %number = lshr i64 %last, 32
  %next = add i64 %number, 1
  %upper = shl i64 %next, 32
  %open = or i64 %upper, %pieces
  store atomic i64 %open, ptr %board seq_cst, align 8
  call void @work(ptr %board)
  br label %wait
wait:
  %turns = phi i64 [ 0, %offer ], [ %turns.next, %pause ], [ %turns.next, %give ]
  %finished = load atomic i64, ptr %done seq_cst, align 8
  %all = icmp eq i64 %finished, %pieces
  br i1 %all, label %close, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %turns.next = add i64 %turns, 1
  %late = and i64 %turns.next, 255
  %often = icmp eq i64 %late, 0
  br i1 %often, label %give, label %wait
give:                                             ; whoever holds the piece may need this very core
  %given = call i32 @bassline_yield()
  br label %wait
close:
  store atomic i64 0, ptr %busy seq_cst, align 8
  ret void
alone:
  br label %look
look:
  %piece = phi i64 [ 0, %alone ], [ %piece.next, %next.piece ]
  %more = icmp slt i64 %piece, %pieces
  br i1 %more, label %next.piece, label %all.done
next.piece:
  call void %function(ptr %fields, i64 %piece, i64 %pieces)
  %piece.next = add i64 %piece, 1
  br label %look
all.done:
  ret void
}}
"""


class ThreadPool:
    """The helpers of this process. ``wake`` before whatever they may share in."""

    def __init__(self, helpers: int):
        self.helpers = helpers
        self._board = (ctypes.c_int64 * _BOARD)()
        binding.add_symbol("bassline_yield", _yield())
        self._code = CompiledModule(_CODE.format(board=ctypes.addressof(self._board), patience=_PATIENCE))
        binding.add_symbol(SHARE_OUT, self._code.address("share_out"))
        self._serve = self._code.function("serve")
        self._asleep: list[threading.Event] = []
        self._threads = [threading.Thread(target=self._help, name=f"loops-{n}", daemon=True) for n in range(helpers)]
        for thread in self._threads:
            thread.start()
        atexit.register(self.end)

    def wake(self) -> None:
        while self._asleep:
            with suppress(IndexError):  # two threads may call at once
                self._asleep.pop().set()

    def end(self) -> None:
        """No helper is in compiled code when that goes."""
        self._board[24] = 1
        self.wake()
        for thread in self._threads:
            thread.join(1)

    def _help(self) -> None:
        while not self._board[24]:
            self._serve()
            call = threading.Event()
            self._asleep.append(call)
            if not self._board[24]:  # whoever ends the pool after this look finds the call
                call.wait()


def helpers() -> int:
    """Beside the caller: as many threads as torch uses, within this process's share of the processor and a bound."""
    return max(1, min(torch.get_num_threads(), quota.processors(), MOST)) - 1


@once
def thread_pool() -> ThreadPool:
    return ThreadPool(helpers())


def compiled(module: ir.Module) -> CompiledModule:
    """A module whose loops are shared out."""
    thread_pool()
    return CompiledModule(module)


def pieces() -> int:
    """Into how many a loop is cut that is worth sharing."""
    threads = 1 + thread_pool().helpers
    return threads * PIECES_EACH if threads > 1 else 1


def _yield() -> int:
    """Where the call lies by which a thread lets others have its core."""
    library, name = ("kernel32", "SwitchToThread") if sys.platform == "win32" else (None, "sched_yield")
    return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value or 0
