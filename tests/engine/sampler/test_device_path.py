"""The ladder from captured graphs to plain PyTorch, on a CPU: every fault at every rung, and what is said about it."""

import ast
import copy
import errno
import subprocess
from functools import partial

import pytest
import torch

from engine.backends.cuda import why_too_old
from engine.contract import Close, Generate, Load, LoadCancelled, LoadFailed, Loading, ModelChoice, Ready, Sampling
from engine.models import notes
from engine.models.errors import UnsupportedModel
from engine.models.room import Room
from engine.sampler.cost_table import CostTable
from engine.sampler.device_model import DeviceModel
from engine.sampler.device_path import GpuLost, open_model, reason_for
from engine.sampler.engine import SamplerEngine
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.self_check import check_ragged
from tests.engine.sampler.device import FakeDevice
from tests.engine.sampler.running import decode, new_rows, open_decoder, tokens_of
from tests.engine.sampler.test_engine import TinyModel, of, request, texts
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy

triton = pytest.importorskip("triton", reason="triton has no wheel for this platform")
from triton.compiler.errors import CompilationError  # noqa: E402
from triton.runtime.errors import OutOfResources  # noqa: E402

ROOM = Room(rows=4, slots=32, prompt=512)
LACK = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB")
FAULTS = {
    "no C compiler": RuntimeError("Failed to find C compiler. Please specify via CC environment variable."),
    "no Python.h": subprocess.CalledProcessError(1, ["gcc", "main.c", "-O3"]),
    "too little shared memory": OutOfResources(131072, 101376, "shared memory"),
    "does not compile": CompilationError("x = tl.dot(a)", ast.parse("x").body[0], "missing argument"),
    "cache folder": PermissionError(errno.EACCES, "Permission denied", "/home/user/.triton/cache"),
    "read-only cache folder": OSError(errno.EROFS, "Read-only file system", "/home/user/.triton/cache"),
    "library": ImportError("libcuda.so.1: cannot open shared object file"),
    "no message": AssertionError(),
}
GRAPHS_ALONE = {
    "refused": RuntimeError("operation not permitted when stream is capturing\nmore"),
    "waits": RuntimeError("called a synchronizing CUDA operation"),
}


@pytest.fixture(scope="module")
def stock():
    return build(spread=0.4)


@pytest.fixture(autouse=True)
def no_verdict_kernels(request, monkeypatch):
    """They take seconds in the interpreter, and have a class of tests to themselves."""
    if request.cls is not TestVerdicts:
        monkeypatch.setattr("engine.sampler.trial.Trial._verdicts", lambda *_: iter(()))


@pytest.fixture(autouse=True)
def small_room(monkeypatch):
    """So that a trial takes no time."""
    monkeypatch.setattr("engine.sampler.device_path.FIRST_ROOM", ROOM)


def climb(stock, device, **options):
    module = copy.deepcopy(stock)
    options = {"check": lambda model: check_ragged(model, "tiny", "float32")} | options
    return open_model(module, VOCABULARY, precision="float32", device=device, **options)


def rung_of(model):
    if type(model) is RaggedModel:
        return "plain"
    return "graphs" if model.graphs.are_on else "kernels"


def said(model, stock):
    """Tokens of five candidates, with copies as drafts; those of the plain model must be the same."""
    prompt, sampling = [3, 4, 5, 6, 3, 4, 5], Sampling(temperature=0.9, top_p=0.9)
    decoder = open_decoder(stock, drafter="suffix")
    if model is not None:
        model.has_kernels = False  # the interpreter's verdicts are compared elsewhere
        decoder.target = model
    return tokens_of(decode(decoder, prompt, new_rows(range(1, 6), prompt, max_tokens=20, sampling=sampling)))


class TestRungs:
    def test_nothing_is_wrong(self, stock):
        device = FakeDevice()
        model = climb(stock, device)
        assert (rung_of(model), model.note, model.has_kernels) == ("graphs", "", True)
        assert said(model, stock) == said(None, stock)

    @pytest.mark.parametrize("fault", [*FAULTS.values(), *GRAPHS_ALONE.values()], ids=[*FAULTS, *GRAPHS_ALONE])
    @pytest.mark.parametrize("after", [0, 3])
    def test_a_capture_that_fails_leaves_the_kernels(self, stock, fault, after):
        """Also one in the middle of others that went well."""
        model = climb(stock, FakeDevice({"capture": [None] * after + [fault]}))
        assert rung_of(model) == "kernels"
        assert model.has_kernels
        assert model.note.startswith("The model runs without captured graphs: its passes cannot be captured as gr")
        assert len(model.note.splitlines()) == 1
        assert said(model, stock) == said(None, stock)

    @pytest.mark.parametrize("where", ["import", "launch"])
    @pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
    def test_kernels_that_fail_leave_plain_pytorch(self, stock, where, fault):
        model = climb(stock, FakeDevice({where: [fault]}))
        assert (rung_of(model), model.has_kernels) == ("plain", False)
        assert model.note == (f"The model runs in plain PyTorch, without the GPU kernels: {reason_for(fault)}.")
        assert said(model, stock) == said(None, stock)

    @pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
    def test_kernels_that_fail_only_without_graphs(self, stock, fault):
        """The second rung alone: the first has failed in its first capture, after some launches that went well."""
        device = FakeDevice({"capture": [GRAPHS_ALONE["refused"]]})
        launched = climb(stock, device).graphs and device.launches
        first = FakeDevice({"capture": [GRAPHS_ALONE["refused"]], "launch": [None] * (launched // 2) + [fault]})
        model = climb(stock, first)
        assert rung_of(model) == "plain"
        assert model.note.startswith("The model runs in plain PyTorch, without the GPU kernels: its passes cannot be")
        assert model.note.endswith(f"; {reason_for(fault)}.")
        assert said(model, stock) == said(None, stock)

    @pytest.mark.parametrize("wrong", [1.5, 0.0, float("nan"), -1.0])
    def test_wrong_numbers(self, stock, wrong):
        model = climb(stock, FakeDevice(wrong=wrong))
        assert rung_of(model) == "plain"
        assert "wrong numbers" in model.note
        assert said(model, stock) == said(None, stock)

    @pytest.mark.parametrize("wrong", [1.5, float("nan")])
    def test_numbers_that_are_wrong_in_long_lines_only(self, stock, monkeypatch, wrong):
        """The self-check's few tokens are right: a tile that only longer lines use is not."""
        attention = FakeDevice.attention

        def wrong_when_wide(device):
            right = attention(device)
            return lambda query, *rest, **options: right(query, *rest, **options) * (wrong if len(query) > 50 else 1.0)

        monkeypatch.setattr(FakeDevice, "attention", wrong_when_wide)
        model = climb(stock, FakeDevice())
        assert rung_of(model) == "plain"
        assert "wrong numbers" in model.note

    def test_graphs_that_replay_something_else(self, stock, monkeypatch):
        """Kernels are right, and so is the first run of a graph, but what is replayed later is not what was asked."""
        from tests.engine.sampler.device import Rerun

        def stale(capture, work):
            out = work()
            return (lambda: None), out

        monkeypatch.setattr(Rerun, "__call__", stale)
        model = climb(stock, FakeDevice())
        assert rung_of(model) == "kernels"
        assert model.note.startswith("The model runs without captured graphs: it gave wrong numbers there")
        assert said(model, stock) == said(None, stock)

    @pytest.mark.parametrize("precision", ["bfloat16", "float16"])
    def test_rounding_is_no_wrong_number(self, precision):
        stock = build(spread=0.25, dtype=getattr(torch, precision))
        model = open_model(stock, VOCABULARY, precision=precision, check=lambda model: None, device=FakeDevice())
        assert (rung_of(model), model.note) == ("graphs", "")

    @pytest.mark.parametrize("architecture", ["gemma2", "gpt_oss", "opt", "starcoder2"])
    def test_windows_sinks_and_learned_positions(self, architecture):
        """Also a model that reads fewer tokens than the trial would like to give it."""
        short = {"max_position_embeddings": 128} if architecture == "opt" else {}
        stock = build(architecture, **short)
        model = climb(stock, FakeDevice())
        assert (rung_of(model), model.note) == ("graphs", "")

    def test_a_model_that_cannot_be_batched_is_refused_on_the_last_rung(self, stock):
        def refuse(model):
            raise UnsupportedModel("tiny gives other results in a ragged batch than alone; choose another model.")

        with pytest.raises(UnsupportedModel, match="choose another model"):
            climb(stock, FakeDevice(), check=refuse)

    def test_a_check_that_only_the_kernels_fail(self, stock):
        def refuse(model):
            if isinstance(model, DeviceModel):
                raise UnsupportedModel("tiny cannot run in a ragged batch; choose another model.") from FAULTS[
                    "cache folder"
                ]

        model = climb(stock, FakeDevice(), check=refuse)
        assert rung_of(model) == "plain"
        assert "/home/user/.triton/cache cannot be written" in model.note

    def test_what_is_known_beforehand_is_not_tried(self, stock):
        device = FakeDevice(plain=why_too_old((7, 5)))
        model = climb(stock, device)
        assert (rung_of(model), device.launches) == ("plain", 0)
        assert model.note.startswith("This GPU is older than Ampere")
        assert why_too_old((8, 0)) == why_too_old((12, 0)) == ""

    def test_on_a_cpu_there_is_one_door(self, stock):
        model = climb(stock, None)
        assert (rung_of(model), model.note) == ("plain", "")

    def test_a_gpu_that_a_kernel_has_taken_down_is_said_so(self, stock):
        fault = RuntimeError("CUDA error: an illegal memory access was encountered\nmore")
        with pytest.raises(GpuLost, match=r"illegal memory access.*--device cpu") as raised:
            climb(stock, FakeDevice({"launch": [fault]}, alive=False))
        assert len(str(raised.value).splitlines()) == 1

    @pytest.mark.parametrize("has_graphs", [True, False])
    def test_a_kernel_that_fails_later_in_larger_room_gives_way_in_the_middle_of_a_run(self, stock, has_graphs):
        """Compiled again for more rows, say, into a cache folder that has become full meanwhile."""
        device = FakeDevice({} if has_graphs else {"capture": [GRAPHS_ALONE["refused"]]})
        model = climb(stock, device)
        device.faults["launch"] = [None] * 10 + [OSError(errno.ENOSPC, "No space left on device")]
        assert said(model, stock) == said(None, stock)
        assert model.note.startswith("Attention went on in plain PyTorch after a kernel failed ([Errno 28] No space")
        assert said(model, stock) == said(None, stock)

    def test_a_lack_of_memory_in_a_run_is_no_fault_of_a_kernel(self, stock):
        device = FakeDevice()
        model = climb(stock, device)
        device.faults["launch"] = [LACK, None]
        with pytest.raises(torch.OutOfMemoryError):
            model.prefill([3, 4, 5])
        assert (rung_of(model), model.note) == ("graphs", "")

    def test_every_try_is_told_and_can_be_stopped(self, stock):
        told = []

        def progress(done, total):
            told.append((done, total))
            if len(told) == 4:
                raise LoadCancelled("Loading was stopped.")

        with pytest.raises(LoadCancelled):
            climb(stock, FakeDevice(), progress=progress)
        assert [done for done, _ in told] == [0, 1, 2, 3]
        assert told[0][1] >= 6


class TestMemory:
    @pytest.mark.parametrize("where", ["capture", "launch", "import"])
    def test_a_lack_of_it_halves_the_rows_and_keeps_the_rung(self, stock, monkeypatch, where):
        monkeypatch.setattr("engine.sampler.device_path.FIRST_ROOM", Room(8, 32, 512))
        model = climb(stock, FakeDevice({where: [LACK, LACK, None]}))
        assert (rung_of(model), model.note) == ("graphs", "")
        assert model.cache.room.rows == 2
        assert said(model, stock) == said(None, stock)

    @pytest.mark.parametrize("where", ["capture", "launch"])
    def test_where_fewer_rows_do_not_help_it_is_raised_as_such(self, stock, where):
        with pytest.raises(torch.OutOfMemoryError):
            climb(stock, FakeDevice({where: [LACK]}))

    def test_it_is_found_behind_what_came_of_it(self, stock):
        """Ending a capture in which memory ran out fails in turn."""
        broken = RuntimeError("operation failed due to a previous error during capture")
        broken.__context__ = LACK
        model = climb(stock, FakeDevice({"capture": [broken, None]}))
        assert (rung_of(model), model.cache.room.rows) == ("graphs", ROOM.rows // 2)


class TestReasons:
    def test_what_would_mend_it_is_said(self):
        said = {name: reason_for(error) for name, error in FAULTS.items()}
        assert "install gcc" in said["no C compiler"]
        assert "python3-dev" in said["no Python.h"]
        assert "TRITON_CACHE_DIR" in said["cache folder"]
        assert said["cache folder"] == said["read-only cache folder"]
        assert "shared memory" in said["too little shared memory"]
        assert said["no message"] == "AssertionError"
        for text in said.values():
            assert "another model" not in text
            assert len(text.splitlines()) == 1
            assert not text.endswith(".")

    def test_missing_headers_are_named_where_they_are_missing(self, monkeypatch, tmp_path):
        monkeypatch.setattr("sysconfig.get_paths", lambda: {"include": str(tmp_path)})
        assert "without Python.h" in reason_for(FAULTS["no Python.h"])
        (tmp_path / "Python.h").touch()
        assert "without" not in reason_for(FAULTS["no Python.h"])


class TestVerdicts:
    """The same decision serves them: a fault of theirs is one of the rung."""

    @pytest.fixture(autouse=True)
    def few_rows(self, monkeypatch):
        monkeypatch.setattr("engine.sampler.device_path.FIRST_ROOM", Room(1, 32, 512))

    def test_right_ones_stay(self, stock):
        model = climb(stock, FakeDevice())
        assert (rung_of(model), model.note, model.has_kernels) == ("graphs", "", True)

    @pytest.mark.parametrize(
        ("kernel", "fault"), [("accept", FAULTS["cache folder"]), ("draw", FAULTS["too little shared memory"])], ids=str
    )
    def test_a_fault(self, stock, monkeypatch, fault, kernel):
        def fail(*_, **__):
            raise fault

        monkeypatch.setattr(f"kernels.acceptance.triton.{kernel}", fail)
        model = climb(stock, FakeDevice())
        assert (rung_of(model), model.has_kernels) == ("plain", False)
        assert reason_for(fault) in model.note

    @pytest.mark.parametrize("part", ["accepted", "tokens", "scores"])
    def test_wrong_ones(self, stock, monkeypatch, part):
        from kernels.acceptance import triton as kernels

        unpack = kernels.unpack

        def wrong(result, rows):
            parts = dict(zip(("accepted", "tokens", "scores"), unpack(result, rows), strict=True))
            parts[part] = parts[part] * 0 + 1 if part == "accepted" else parts[part] + 1
            return tuple(parts.values())

        monkeypatch.setattr(kernels, "unpack", wrong)
        model = climb(stock, FakeDevice())
        assert (rung_of(model), model.has_kernels) == ("plain", False)
        assert "came out wrong there" in model.note


class TestEngine:
    @pytest.fixture
    def talk(self, stock, monkeypatch, tmp_path):
        monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
        monkeypatch.setattr("engine.sampler.engine.check_pair", lambda target, draft: None)
        monkeypatch.setattr("engine.sampler.engine.measured_once", lambda *_: CostTable({1: 1.0, 8: 1.2, 16: 2.0}))
        modules = {"target": stock, "draft": noisy_copy(stock, 0.05)}

        def run(device, *messages):
            if device is not None:
                monkeypatch.setattr("engine.sampler.engine.open_model", partial(open_model, device=device))
            opened = {name: TinyModel(name, copy.deepcopy(module)) for name, module in modules.items()}
            engine, events = SamplerEngine(lambda name, **_: opened[name], lambda name, **_: None), []
            for message in messages:
                engine.submit(message)

            def emit(event):
                events.append(event)
                if type(event).__name__ in ("RunFinished", "LoadFailed"):
                    engine.submit(Close())

            engine.run(emit)
            return events

        return run

    @pytest.mark.parametrize(
        "faults",
        [{}, {"capture": [FAULTS["no C compiler"]]}, {"launch": [FAULTS["cache folder"]]}],
        ids=["graphs", "kernels", "plain"],
    )
    @pytest.mark.parametrize("draft", ["", "draft"])
    def test_loads_on_every_rung_with_the_same_texts_and_says_what_is_missing(self, talk, faults, draft, monkeypatch):
        asked = request(5, tokens=30, drafter="draft-model" if draft else "suffix")
        load = Load(ModelChoice("target", draft=draft))
        plain = talk(None, load, Generate("r", asked))
        monkeypatch.setattr(DeviceModel, "has_kernels", property(lambda self: False, lambda self, value: None), False)
        events = talk(FakeDevice(faults), load, Generate("r", asked))
        assert texts(events) == texts(plain)
        assert not of(LoadFailed, events)
        (ready,) = of(Ready, events)
        assert bool(ready.note) == bool(faults)
        assert "another model" not in ready.note
        expected = {"target", "draft"} if draft else {"target"}
        assert set(notes.kept()) == (expected if faults else set())
        assert any(event.stage == "kernels" and event.total > 1 for event in of(Loading, events))

    @pytest.mark.parametrize(("device", "said"), [("auto", "The driver is too old."), ("cpu", "")])
    def test_a_model_that_fell_to_the_processor_says_why(self, talk, monkeypatch, device, said):
        monkeypatch.setattr("engine.sampler.engine.why_on_cpu", lambda: "The driver is too old.")
        events = talk(None, Load(ModelChoice("target", device=device)), Generate("r", request(1)))
        assert of(Ready, events)[0].note == said

    def test_a_load_that_no_width_fits_is_out_of_memory(self, talk):
        (failed,) = of(LoadFailed, talk(FakeDevice({"launch": [LACK]}), Load(ModelChoice("target"))))
        assert failed.kind == "out-of-memory"
