"""The end of the process: in order and with its own exit code, whatever still computes."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.system import leaving

ROOT = Path(__file__).parents[2]
ABORTED = -6

COMPUTING = """
import threading, torch
def compute():
    a = torch.randn(300, 300)
    while True:
        a = torch.nn.functional.silu(a @ a)
for _ in range(2):
    threading.Thread(target=compute, daemon=True).start()
"""


def python(code: str, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"BASSLINE_HOME": str(home), "QT_QPA_PLATFORM": "offscreen", "PATH": "/usr/bin:/bin", "HOME": str(home)}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=90, check=False)


@pytest.mark.parametrize("code", [0, 2])
def test_threads_that_compute_do_not_spoil_the_exit_code(tmp_path: Path, code: int) -> None:
    end = f"import time; time.sleep(0.3); print('kept', end=''); from app.system.leaving import end; end({code})"
    done = python(COMPUTING + end, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (code, "kept", "")


def test_one_thread_that_is_left_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(leaving, "leave", left.append)
    for threads in (1, 2, 3):
        monkeypatch.setattr(threading, "active_count", lambda now=threads: now)
        with pytest.raises(SystemExit) as ended:
            leaving.end(threads)
        assert ended.value.code == threads
    assert left == [2, 3]


def test_a_command_ends_with_its_own_code_though_the_engine_computes(tmp_path: Path) -> None:
    """An engine that does not hear: its thread goes on in torch while the command says what was wrong."""
    code = f"""
import sys
sys.argv = ["main.py", "generate", "x", "--model", "scripted", "--no-history", "--progress", "none"]
import torch, app.cli.playing, app.cli.generation, engine.contract as contract
app.cli.generation._CLOSE_S = 0.3

class Deaf:
    def submit(self, message): pass
    def run(self, emit):
        emit(contract.LoadFailed("It does not load."))
        a = torch.randn(300, 300)
        while True:
            a = torch.nn.functional.silu(a @ a)

app.cli.playing.open_engine = lambda choice: Deaf()
import runpy
runpy.run_path({str(ROOT / "main.py")!r}, run_name="__main__")
"""
    done = python(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "bassline: It does not load.\n")


WINDOW = """
import os, signal, sys, threading, time
import torch
from PySide6.QtCore import QTimer
import app.system.engine_thread, app.system.engines, app.controllers.runs, app.window.start
from engine.contract import Cancel, Closed, Close, Generate, Load, Ready, RunStarted, RunFinished, PromptProgress

app.system.engine_thread.CLOSE_S = 0.5
app.controllers.runs.FORCE_MS = 100
engines = []

class LongStep:
    '''Reads its messages between steps, and a step takes as long as ``seconds`` says.'''
    seconds = 60.0
    def __init__(self): self.messages, self.arrived = [], threading.Event()
    def submit(self, message): self.messages.append(message); self.arrived.set()
    def run(self, emit):
        while True:
            self.arrived.wait(); self.arrived.clear()
            while self.messages:
                message = self.messages.pop(0)
                if isinstance(message, Close): return emit(Closed())
                if isinstance(message, Load): emit(Ready("m", "cpu", "int8", 1024))
                if isinstance(message, Generate):
                    emit(RunStarted(message.run, 4, (1,), 1))
                    until, a = time.monotonic() + self.seconds, torch.randn(300, 300)
                    while time.monotonic() < until:
                        a = torch.nn.functional.silu(a @ a)
                    emit(RunFinished(message.run, "stopped"))

def open_engine(choice):
    engines.append(LongStep())
    return engines[-1]

app.window.start.open_engine = open_engine
build = app.window.start.build

def watched(*args):
    controller = build(*args)
    def step():
        try:
            plan(controller)
        except StopIteration:
            pass
    def plan(controller, steps=iter(STEPS)):
        wait, do = next(steps)
        QTimer.singleShot(wait, lambda: (do(controller), step()))
    step()
    return controller

def begin(c):
    c.window.bar.choose_model("scripted")
    c.window.prompt.replace_text("x")
    c.generate()

def running(c):
    assert c.running.busy and c.running.run.state != "waiting", c.running.run and c.running.run.state
    print("running", flush=True)

app.window.start.build = watched
"""
END = """
sys.exit(app.window.start.main([]))
"""
BUSY = "(100, begin), (700, running)"


@pytest.mark.parametrize(
    ("how", "seconds"),
    [
        ("(1, lambda c: c.shut_down())", 60),
        ("(1, lambda c: c.shut_down())", 0.9),
        ("(1, lambda c: os.kill(os.getpid(), signal.SIGTERM))", 60),
        ("(1, lambda c: os.kill(os.getpid(), signal.SIGINT))", 60),
        ("(1, lambda c: (c.stop(), c.shut_down()))", 60),
    ],
    ids=["closed", "closed at the end of a step", "terminated", "interrupted", "stopped and closed"],
)
def test_the_window_closes_in_order_while_the_engine_computes(tmp_path: Path, how: str, seconds: float) -> None:
    steps = f"STEPS = [{BUSY}, {how}]\nLongStep.seconds = {seconds}\n"
    done = python(WINDOW + steps + END, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "running\n"
    assert "terminate called" not in done.stderr
    assert "QThread" not in done.stderr


def test_the_window_closes_in_order_while_something_is_looked_up(tmp_path: Path) -> None:
    """A task's thread computes: whether a model fits, what a server heeds."""
    steps = """
from app.system.tasks import Task
def task(c):
    c.task = Task(c)
    def compute():
        a = torch.randn(300, 300)
        while True:
            a = torch.nn.functional.silu(a @ a)
    c.task.run(compute)
STEPS = [(100, task), (300, lambda c: c.shut_down())]
"""
    done = python(WINDOW + steps + END, tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "terminate called" not in done.stderr


def test_an_error_that_ends_the_window_is_told_and_no_crash(tmp_path: Path) -> None:
    steps = f"""
def break_off(c):
    import asyncio
    asyncio.get_event_loop().stop()
STEPS = [{BUSY}, (1, break_off)]
"""
    done = python(WINDOW + steps + END, tmp_path)
    assert done.returncode == 1, done.stderr
    assert "RuntimeError" in done.stderr
    assert "RuntimeError" in (tmp_path / "logs" / "window.log").read_text("utf-8")


def test_force_leaves_one_engine_behind_and_starts_another(tmp_path: Path) -> None:
    """Stop, Force stop, Generate: two engines compute at once, and the window closes in order all the same."""
    steps = f"""
from PySide6.QtWidgets import QPushButton
def force(c):
    button, = [b for b in c.window.notice.findChildren(QPushButton) if b.text() == "Force stop" and b.isVisible()]
    button.click()
    print(c.running.run.outcome, c.running.busy, flush=True)
def both(c):
    assert len(engines) == 2
    assert sum(t.isRunning() for t in [c.loading.engine._worker, *(e._worker for e in c.loading._left)]) == 2
STEPS = [{BUSY}, (1, lambda c: c.stop()), (400, force), (10, begin), (900, running), (1, both),
         (1, lambda c: c.shut_down())]
"""
    done = python(WINDOW + steps + END, tmp_path)
    assert (done.returncode, done.stdout) == (0, "running\nstopped False\nrunning\n"), done.stderr
    assert "QThread" not in done.stderr


def test_what_was_left_behind_is_let_go_when_its_step_is_over(tmp_path: Path) -> None:
    steps = f"""
LongStep.seconds = 1.5
def force(c): c.stop(); c.running.force()
def alone(c):
    left = [e for e in c.loading._left if not e.finished]
    print("left", len(left), flush=True)
STEPS = [{BUSY}, (1, force), (10, begin), (2500, alone), (1, lambda c: c.shut_down())]
"""
    done = python(WINDOW + steps + END, tmp_path)
    assert (done.returncode, done.stdout) == (0, "running\nleft 0\n"), done.stderr
