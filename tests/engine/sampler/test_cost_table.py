"""What a pass costs is measured once per machine, kept, and can be interrupted."""

import json
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import psutil
import pytest

from engine.contract import Close, Generate, Load, LoadCancelled, ModelChoice, Ready, Request, RunFinished, Sampling
from engine.sampler import cost_table
from engine.sampler.cost_table import CONTEXT, FAR, SIZES, TRUST, CostTable, better, measured_once
from engine.sampler.disturbance import BUSY, Disturbance, glance
from engine.sampler.engine import SamplerEngine
from engine.sampler.ragged_model import RaggedModel
from tests.engine.sampler.test_engine import TinyModel, any_name
from tests.engine.sampler.tiny import VOCABULARY, build

ZEROS = json.dumps({"near": dict.fromkeys(map(str, SIZES), 0.0), "far": {}})
OLDEST = json.dumps(dict.fromkeys(map(str, SIZES), 1.0))  # before context was measured
TIMES = {"near": dict.fromkeys(map(str, SIZES), 1.0), "far": {}}
NEWER = json.dumps(TIMES | {"format": 3})
ODD = json.dumps(TIMES | {"format": 2, "disturbed": 0, "lessons": {"overall": -1, "seen": {}}})


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """``machine.share``: what others take of the processor, whatever the tests run beside."""
    machine = SimpleNamespace(share=0.0)
    monkeypatch.setattr("engine.sampler.disturbance.Disturbance.share", lambda self: machine.share)
    monkeypatch.setattr("engine.sampler.disturbance.GLANCE", 0)
    monkeypatch.setattr("engine.sampler.cost_table.glance", lambda: machine.share)
    monkeypatch.setattr("engine.sampler.engine.glance", lambda: machine.share)
    return machine


@pytest.fixture
def model():
    return RaggedModel(build(), VOCABULARY)


def test_measured_once_and_kept(model, tmp_path):
    passes = []
    first = measured_once(model, "a/b: c", "int8", 4096, tmp_path / "new", lambda: passes.append(1))
    assert len(passes) >= len(SIZES)
    assert 0 < first.seconds(1) <= first.seconds(64)
    assert model.prompt_length == 0

    def never():
        raise AssertionError("measured again")

    again = measured_once(model, "a/b: c", "int8", 4096, tmp_path / "new", never)
    assert again.as_dict() == first.as_dict()


@pytest.mark.parametrize("content", ["", "[]", '{"1": "x"}', "{}", ZEROS, OLDEST, NEWER, ODD])
def test_a_damaged_file_is_measured_anew(model, tmp_path, content):
    first = measured_once(model, "m", "int8", 4096, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    assert measured_once(model, "m", "int8", 4096, tmp_path).as_dict().keys() == first.as_dict().keys()


def test_a_folder_that_cannot_be_written_costs_only_time(model, tmp_path):
    (tmp_path / "file").write_text("")
    assert measured_once(model, "m", "int8", 4096, tmp_path / "file" / "below").seconds(1) > 0


def test_loading_can_be_stopped_while_it_measures(model, tmp_path):
    def stop():
        raise LoadCancelled("Loading was stopped.")

    with pytest.raises(LoadCancelled):
        measured_once(model, "m", "int8", 4096, tmp_path, stop)
    assert list(tmp_path.iterdir()) == []
    assert model.prompt_length == 0


def test_far_is_left_out_where_the_model_cannot_read_so_much(model, tmp_path):
    table = measured_once(model, "m", "int8", 512, tmp_path)
    assert table.as_dict()["far"] == {}
    assert measured_once(model, "m", "int8", 512, tmp_path).as_dict() == table.as_dict()


def test_context_costs_more_the_more_tokens_look_at_it():
    table = CostTable({1: 1.0, 8: 2.0, 32: 4.0}, {1: 1.1, 8: 3.0, 32: 8.0})
    near = [table.seconds(size) for size in (1, 8, 32)]
    assert near == [1.0, 2.0, 4.0]
    table.context = FAR
    assert [table.seconds(size) for size in (1, 8, 32)] == pytest.approx([1.1, 3.0, 8.0])
    table.context = (CONTEXT + FAR) // 2
    assert table.seconds(8) == pytest.approx(2.5)


def count_measurements(monkeypatch, seconds=()):
    """How often the machine was measured; the n-th measurement says ``seconds[n]`` for every size."""
    found, measure = [], cost_table.measure

    def counted(model, context, between=lambda: None):
        table = measure(model, context, between)
        if len(found) < len(seconds):
            table = CostTable(dict.fromkeys(SIZES, seconds[len(found)]), {}, table.disturbed)
        found.append(table)
        return table

    monkeypatch.setattr(cost_table, "measure", counted)
    return found


def test_measured_while_busy_it_is_measured_again_when_the_machine_is_idle(model, tmp_path, machine, monkeypatch):
    found = count_measurements(monkeypatch, [3.0, 1.0])
    machine.share = 2 * BUSY
    assert measured_once(model, "m", "int8", 512, tmp_path).is_doubtful
    assert measured_once(model, "m", "int8", 512, tmp_path).seconds(8) == 3.0  # still busy: what is there serves
    assert len(found) == 1
    machine.share = 0.0
    table = measured_once(model, "m", "int8", 512, tmp_path)
    assert (table.seconds(8), table.is_doubtful, len(found)) == (1.0, False, 2)
    machine.share = 2 * BUSY  # a busy day ruins nothing
    assert measured_once(model, "m", "int8", 512, tmp_path).seconds(8) == 1.0
    assert len(found) == 2


def test_where_the_system_says_nothing_of_others_the_table_is_believed(model, tmp_path, machine, monkeypatch):
    found = count_measurements(monkeypatch)
    machine.share = None
    for _ in range(2):
        assert not measured_once(model, "m", "int8", 512, tmp_path).is_doubtful
    assert len(found) == 1


def test_of_two_disturbed_measurements_the_faster_times_count():
    old, new = CostTable({1: 1.0, 8: 9.0}, {1: 2.0}, 0.9), CostTable({1: 1.5, 8: 3.0}, {1: 1.8}, 0.4)
    both = better(old, new)
    assert (both.seconds(1), both.seconds(8), both.disturbed) == (1.0, 3.0, 0.4)
    assert both.as_dict()["far"] == {1: 1.8}
    quiet = CostTable({1: 1.5, 8: 3.0}, {}, 0.0)
    assert better(old, quiet) is quiet


def test_a_table_of_the_first_format_serves_until_the_machine_is_idle(model, tmp_path, machine, monkeypatch):
    """It does not say how busy the machine was."""
    measured_once(model, "m", "int8", 512, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps({"near": dict.fromkeys(map(str, SIZES), 7.0), "far": {}}))
    found = count_measurements(monkeypatch, [1.0])
    machine.share = 2 * BUSY
    assert measured_once(model, "m", "int8", 512, tmp_path).seconds(8) == 7.0
    machine.share = 0.0
    assert measured_once(model, "m", "int8", 512, tmp_path).seconds(8) == 1.0
    assert len(found) == 1


def test_what_steps_taught_is_there_after_a_restart_and_gives_way_to_new_steps(tmp_path):
    table = CostTable(dict.fromkeys(SIZES, 1.0), {})
    table.path = tmp_path / "new" / "t.json"
    for _ in range(200):
        table.refine(8, 1.5)
    table.keep()
    again = CostTable.read(table.path)
    assert again.seconds(8) == pytest.approx(table.seconds(8), rel=0.01)
    assert again.seconds(4) == pytest.approx(1.5, rel=0.01)  # the factor of all sizes
    for _ in range(40):
        again.refine(8, 1.0)
    assert again.seconds(8) < 1.15
    assert [path.name for path in table.path.parent.iterdir()] == ["t.json"]


def test_lessons_can_be_taken_back():
    table = CostTable({1: 1.0, 8: 2.0})
    table.refine(8, 2.2)
    known, before = table.lessons, table.seconds(8)
    for _ in range(50):
        table.refine(8, 20.0)
    assert table.seconds(8) > 10
    table.lessons = known
    assert table.seconds(8) == before


class Talk:
    """An engine with a tiny model; ``play`` runs the jobs one after another, with others taking their ``shares``."""

    def __init__(self, machine):
        self.machine = machine
        module = build(spread=0.4)
        self.engine = SamplerEngine(lambda name, **_: TinyModel(name, module), any_name)
        self.texts = []

    def play(self, shares):
        left = list(shares)

        def emit(event):
            if isinstance(event, RunFinished):
                if left:
                    self._ask(left)
                else:
                    self.engine.submit(Close())

        self.engine.submit(Load(ModelChoice("tiny")))
        self._ask(left)
        self.engine.run(emit)

    def _ask(self, left):
        self.machine.share = left.pop(0)
        sampling = Sampling(temperature=1.0, max_tokens=12)
        self.engine.submit(Generate(f"r{len(left)}", Request("some code", 3, candidates=2, sampling=sampling)))


@pytest.fixture
def talk(machine, tmp_path, monkeypatch):
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
    monkeypatch.setattr("engine.sampler.engine.IDLE_S", 0.05)
    return Talk(machine)


def kept(tmp_path):
    (path,) = (tmp_path / "data" / "costs").iterdir()
    return json.loads(path.read_text())


def test_a_quiet_run_is_learned_from_and_a_busy_one_is_not(talk, tmp_path, monkeypatch):
    taught = []
    monkeypatch.setattr(CostTable, "refine", lambda self, tokens, seconds: taught.append(self) or self._learn(tokens))
    monkeypatch.setattr(CostTable, "_learn", lambda self, tokens: self._seen.update({tokens: (2.0, 9)}), raising=False)
    talk.play([2 * BUSY])
    assert taught
    assert kept(tmp_path)["lessons"]["seen"] == {}
    assert taught[-1].lessons.seen == {}
    Talk(talk.machine).play([0.0])
    assert set(map(tuple, kept(tmp_path)["lessons"]["seen"].values())) == {(2.0, TRUST)}


def test_an_engine_that_nobody_asks_measures_again(talk, tmp_path, machine, monkeypatch):
    found = count_measurements(monkeypatch, [3.0, 1.0])
    machine.share, done = 2 * BUSY, threading.Event()
    seen = []

    def emit(event):
        if isinstance(event, RunFinished):
            machine.share = 0.0  # and now nobody asks for anything
            done.set()
            seen.append(talk.engine._pair.ragged._recall)

    talk.engine.submit(Load(ModelChoice("tiny")))
    talk._ask([2 * BUSY])
    thread = threading.Thread(target=talk.engine.run, args=(emit,))
    thread.start()
    assert done.wait(30)
    deadline = time.monotonic() + 30
    while talk.engine._pair.costs.is_doubtful and time.monotonic() < deadline:
        time.sleep(0.02)
    pair = talk.engine._pair
    assert (pair.costs.seconds(8), len(found)) == (1.0, 2)
    assert kept(tmp_path)["disturbed"] == 0.0
    assert pair.ragged._recall is seen[0]  # a follow-up goes on from what was read before
    assert pair.ragged.prompt_length == len("some code")
    talk.engine.submit(Close())
    thread.join(30)
    assert not thread.is_alive()


def test_a_question_stops_the_measuring(talk, machine, monkeypatch):
    """And is answered with the table of before; what was half measured is nowhere."""
    machine.share, stopped = 2 * BUSY, []
    talk.engine.submit(Load(ModelChoice("tiny")))
    measure = cost_table.measure

    def asked_meanwhile(model, context, between=lambda: None):
        if talk.engine._pair is not None:
            stopped.append(talk.engine._pair.costs)
            talk._ask([0.0])
        return measure(model, context, between)

    monkeypatch.setattr(cost_table, "measure", asked_meanwhile)

    def emit(event):
        if isinstance(event, Ready):
            machine.share = 0.0
        if isinstance(event, RunFinished):
            assert event.outcome == "finished"
            assert talk.engine._pair.costs is stopped[0]
            talk.engine.submit(Close())

    talk.engine.run(emit)
    assert len(stopped) == 1


def test_the_share_of_others_is_what_is_left_of_the_cores_that_passes_run_on(monkeypatch):
    monkeypatch.undo()  # the real share, of made-up readings
    monkeypatch.setattr("engine.sampler.disturbance.psutil.cpu_count", lambda: 8)
    monkeypatch.setattr("engine.sampler.disturbance.torch.get_num_threads", lambda: 4)

    def share(everyone, own):
        readings = iter([(0.0, 100.0, 50.0), (10.0, 100.0 + everyone, 50.0 + own)])
        monkeypatch.setattr("engine.sampler.disturbance._spent", lambda: next(readings))
        return Disturbance().share()

    assert share(40.0, 40.0) == 0.0
    assert share(70.0, 40.0) == 0.0  # three cores of the four that passes leave alone
    assert share(80.0, 20.0) == pytest.approx(0.5)
    assert share(80.0, 0.0) == 1.0
    assert share(20.0, 30.0) == 0.0  # readings are not of one moment
    monkeypatch.setattr("engine.sampler.disturbance._spent", lambda: None)
    assert Disturbance().share() is None


def test_others_are_seen_by_what_this_system_counts(monkeypatch):
    monkeypatch.undo()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(psutil.cpu_count())]
    try:
        assert glance(1.0) > BUSY
    finally:
        for process in busy:
            process.kill()
            process.wait()
