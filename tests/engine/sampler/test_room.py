"""Room on a device: made once for a run, given back where memory lacks, and as large as the memory plan says."""

import copy
from types import SimpleNamespace

import pytest
import torch

from engine.contract import Close, Generate, Load, ModelChoice, RunFinished
from engine.models.memory_plan import MemoryPlan, ModelPart
from engine.models.model_shape import ModelShape
from engine.models.room import Room, power_of_two
from engine.sampler.acceptance import Coupled, Rejection
from engine.sampler.cost_table import CostTable, measured_once
from engine.sampler.device_model import DeviceModel
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.engine import SamplerEngine
from engine.sampler.fixed_cache import FixedLayer
from engine.sampler.ragged_model import RaggedModel
from kernels.attention.torch import packed_attention
from tests.engine.sampler.device import Rerun
from tests.engine.sampler.running import FREE, assemble, decode, new_rows, open_decoder, tokens_of
from tests.engine.sampler.test_engine import TinyModel, of, request, texts
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy

SMALL = Room(rows=4, slots=8, prompt=16)
LACK = torch.OutOfMemoryError("CUDA out of memory.")


@pytest.fixture(scope="module")
def modules():
    target = build(spread=0.4)
    return {"target": target, "draft": noisy_copy(target, 0.05)}


def open_device(module, capture=None, room=SMALL):
    return DeviceModel(copy.deepcopy(module), VOCABULARY, packed_attention, capture or Rerun(), room=room)


@pytest.fixture
def loops():
    pytest.importorskip("triton", reason="triton has no wheel for this platform")
    from engine.sampler.drafters import draft_loop

    return draft_loop


class Stage:
    """An engine over tiny models behind the device's door. ``captures``: lines that were captured, one list a model."""

    def __init__(self, modules, monkeypatch):
        self.modules, self.captures, self.models = modules, [], []
        self.door = self.open
        monkeypatch.setattr("engine.sampler.engine.check_pair", lambda target, draft: None)
        monkeypatch.setattr("engine.sampler.engine.measured_once", lambda *_: CostTable({1: 1.0, 8: 1.2, 16: 2.0}))
        monkeypatch.setattr(
            "engine.sampler.engine.open_model", lambda module, vocabulary, **_: self.door(module, vocabulary)
        )

    def open(self, module, vocabulary):
        graphs = Rerun()

        def capture(work):
            assert not model.cache.is_reading, "a graph over the prompt's store, where rows' slabs belong"
            return graphs(work)

        model = DeviceModel(module, vocabulary, packed_attention, capture, room=SMALL)
        self.captures.append(graphs.sizes)
        self.models.append(model)
        return model

    def run(self, *asked, draft="", react=lambda event: None):
        engine = SamplerEngine(
            lambda name, **_: TinyModel(name, copy.deepcopy(self.modules[name])), lambda name, **_: None
        )
        events, waiting = [], [Generate(str(number), one) for number, one in enumerate(asked)]

        def emit(event):
            events.append(event)
            react(event)
            if type(event).__name__ in ("Ready", "RunFinished"):
                engine.submit(waiting.pop(0) if waiting else Close())

        engine.submit(Load(ModelChoice("target", draft=draft)))
        engine.run(emit)
        return events


@pytest.fixture
def stage(modules, monkeypatch):
    return Stage(modules, monkeypatch)


class TestOnce:
    @pytest.mark.parametrize("drafter", ["suffix", "draft-model"])
    def test_graphs_of_a_run_are_captured_before_its_first_step_and_never_again(self, stage, drafter):
        """An answer longer than the room of the load; then shorter ones, which go on in the same room."""
        seen = []

        def react(event):
            if type(event).__name__ in ("PromptProgress", "RunFinished"):
                seen.append([len(sizes) for sizes in stage.captures])

        asked = [request(3, tokens=count, drafter=drafter) for count in (40, 12, 40)]
        events = stage.run(*asked, draft="draft" if drafter == "draft-model" else "", react=react)
        assert [event.outcome for event in of(RunFinished, events)] == ["finished"] * 3
        assert all(count > 0 for count in seen[0])
        assert seen[-1] == seen[0]
        assert [model.note for model in stage.models] == [""] * len(stage.models)
        assert stage.models[0].cache.room == Room(rows=4, slots=64, prompt=16)

    def test_rows_that_are_never_decoded_together_need_no_room(self, stage):
        from dataclasses import replace

        stage.run(replace(request(12, tokens=9, drafter="none"), width=2))
        assert stage.models[0].cache.room.rows == SMALL.rows


class TestLackOfMemory:
    @pytest.fixture
    def memory_for(self, monkeypatch):
        """Slabs of more rows than this find no memory."""
        allocated = FixedLayer._allocated

        def limit(most):
            def short(layer, rows, *rest):
                if rows > most:
                    raise LACK
                return allocated(layer, rows, *rest)

            monkeypatch.setattr(FixedLayer, "_allocated", short)

        return limit

    @pytest.mark.parametrize(("most", "width"), [(8, 8), (4, 4)])
    def test_a_run_takes_as_many_rows_at_a_time_as_fit(self, stage, memory_for, most, width):
        asked = request(16, tokens=12, drafter="suffix", policy="fixed:2")
        want = texts(stage.run(asked))
        memory_for(most)
        active, decoded = [], lambda event: active.append(getattr(event, "active", 0))
        events = stage.run(asked, react=decoded)
        assert texts(events) == want
        assert stage.models[-1].cache.room.rows <= width
        assert max(active) <= width

    def test_where_not_even_one_row_fits_the_run_ends_with_numbers(self, stage, memory_for):
        memory_for(0)
        (end,) = of(RunFinished, stage.run(request(2, tokens=40)))
        assert (end.outcome, end.kind) == ("refused", "out-of-memory")
        assert "1 candidate at a time with up to " in end.reason

    def test_the_room_of_an_earlier_run_is_given_up_first(self, stage, monkeypatch):
        """Eight rows of a short answer do not fit beside what a longer one has left, but alone they do."""
        resize, calls = FixedLayer.resize, []

        def crowded(layer, room):
            calls.append(room)
            if room.rows * room.slots > 512:
                raise LACK
            return resize(layer, room)

        monkeypatch.setattr(FixedLayer, "resize", crowded)
        events = stage.run(request(1, tokens=120, drafter="none"), request(8, tokens=30, drafter="none"))
        assert [event.outcome for event in of(RunFinished, events)] == ["finished"] * 2
        assert stage.models[0].cache.room.rows == 8

    def test_graphs_that_find_no_memory_halve_the_width(self, stage, monkeypatch):
        asked = request(8, tokens=12, drafter="none")
        want = texts(stage.run(asked))

        def open_(module, vocabulary):
            capture = Rerun()

            def short(work):
                if stage.models[-1].cache.room.rows > 4:
                    raise LACK
                return capture(work)

            stage.models.append(DeviceModel(module, vocabulary, packed_attention, short, room=SMALL))
            return stage.models[-1]

        stage.door = open_
        events = stage.run(asked)
        assert texts(events) == want
        assert of(RunFinished, events)[0].outcome == "finished"
        assert stage.models[-1].cache.room.rows == 4
        assert stage.models[-1].note == ""

    @pytest.mark.parametrize("on_device", [False, True])
    def test_rows_are_read_again_in_pieces(self, modules, monkeypatch, on_device):
        """Behind rows that went on, and with answers longer than a piece; no token changes."""
        monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 5)
        monkeypatch.setattr("engine.sampler.device_model.PREFILL_CHUNK", 5)
        stock, prompt = modules["target"], [3, 4, 5]
        want = tokens_of(decode(open_decoder(stock), prompt, new_rows([1, 2, 3], prompt, max_tokens=30)))
        decoder = open_decoder(stock)
        if on_device:
            decoder.target = open_device(stock)
        rows = new_rows([1, 2, 3], prompt, max_tokens=30)
        logits = decoder.target.prefill(prompt)
        decoder.join(rows, logits)
        for _ in range(14):
            decoder.step()
        decoder.join(decoder.release()[:2], logits)
        pieces, forward = [], decoder.target.forward

        def watched(tokens, starts, **options):
            pieces.append([len(row) for row in tokens])
            return forward(tokens, starts, **options)

        monkeypatch.setattr(decoder.target, "forward", watched)
        decoder.join(rows[2:], logits)
        assert pieces == [[1, 1, 5], [1, 1, 5], [1, 1, 5]]
        while decoder.rows:
            decoder.step()
            decoder.leave()
        assert tokens_of(rows) == want

    def test_the_draft_gives_up_its_room_too(self, modules):
        target, draft = open_device(modules["target"]), open_device(modules["draft"])
        decoder = assemble(target, DraftModelDrafter(draft, Coupled()), "fixed:3", Coupled())
        decoder.reserve(8, 40, 9)
        assert target.cache.room == draft.cache.room == Room(rows=8, slots=64, prompt=16)
        rows, prompt = new_rows([1, 2], [3, 4, 5], max_tokens=20), [3, 4, 5]
        logits = decoder.target.prefill(prompt)
        decoder.drafter.begin(prompt, lambda done: True)
        decoder.join(rows, logits)
        for _ in range(2):
            decoder.step()
        decoder.release()
        assert target.cache.room == draft.cache.room == Room(rows=1, slots=8, prompt=16)
        decoder.join(rows, logits)
        while decoder.rows:
            decoder.step()
            decoder.leave()
        again = open_decoder(modules["target"])
        assert tokens_of(rows) == tokens_of(decode(again, prompt, new_rows([1, 2], prompt, max_tokens=20)))


class TestDraftLoop:
    @pytest.mark.parametrize("rule", [Coupled(), Rejection()], ids=lambda rule: rule.name)
    def test_no_row_is_fed_past_its_limit(self, modules, loops, monkeypatch, rule):
        """Rows of very different limits draft in one loop; each stays inside the slots that it may fill."""
        limits = {1: 3, 2: 16, 3: 9, 4: 1}
        device = open_device(modules["draft"], room=Room(rows=4, slots=16, prompt=4))
        run, fed = device.run, {}

        def watched(step, last_only):
            if not device.cache.is_reading:
                used = step.token_slots != step._trash
                for row, slot in zip(step.rows[used].tolist(), step.token_slots[used].tolist(), strict=True):
                    fed[row] = max(fed.get(row, 0), slot)
            return run(step, last_only)

        decoder = open_decoder(modules["target"], policy="fixed:8", rule=rule.name)
        decoder.drafter = loops.LoopedDraftDrafter(device, decoder.rule)
        prompt = [3, 4, 5]
        rows = [new_rows([n], prompt, max_tokens=most, sampling=FREE)[0] for n, most in limits.items()]
        logits = decoder.target.prefill(prompt)
        decoder.drafter.begin(prompt, lambda done: True)
        decoder.join(rows, logits)
        decoder.leave()
        monkeypatch.setattr(device, "run", watched)
        going = {n: row.limits.max_tokens for n, row in enumerate(decoder.rows)}
        while len(decoder.rows) == len(going):
            decoder.step()
            # Nor is a slot taken for filled that never was: it would be read with the next drafts.
            assert all(len(known) <= fed.get(row, -1) + 1 for row, known in enumerate(decoder.drafter._fed))
            decoder.leave()
        assert fed
        assert all(slot < going[row] for row, slot in fed.items() if row in going)
        assert device.cache.room == Room(rows=4, slots=16, prompt=4)

    def test_drafts_are_those_of_the_plain_way_where_rows_end_apart(self, modules, loops):
        prompt, found = [3, 4, 5, 6], []
        for looped in (False, True):
            decoder = open_decoder(modules["target"], drafter="draft-model", draft=modules["draft"], policy="fixed:6")
            if looped:
                decoder.drafter = loops.LoopedDraftDrafter(open_device(modules["draft"]), decoder.rule)
            rows = [new_rows([n], prompt, max_tokens=most)[0] for n, most in ((1, 5), (2, 14), (3, 2), (4, 9))]
            rows = decode(decoder, prompt, rows)
            found.append([(row.tokens, row.proposed, row.accepted) for row in rows])
        assert found[0] == found[1]

    @pytest.mark.parametrize(("rows", "depths"), [(4, 32), (128, 3), (512, 1)])
    def test_what_drafts_were_drawn_from_is_bounded(self, loops, rows, depths):
        """A vocabulary of 152,064: 2.5 GB at 32 drafts of 128 rows, if nobody minded."""
        drafter = loops.LoopedDraftDrafter(None, Rejection())
        assert drafter._most(152_064, rows) == depths
        assert depths == 1 or 4 * depths * rows * 152_064 <= loops.DRAWN_BYTES
        assert loops.LoopedDraftDrafter(None, Coupled())._most(152_064, rows) == loops.LIMIT

    def test_fewer_drafts_than_planned_are_drawn_where_the_bound_says_so(self, modules, loops, monkeypatch):
        monkeypatch.setattr(loops, "DRAWN_BYTES", 4 * VOCABULARY * 4 * 2)
        device = open_device(modules["target"])
        decoder = open_decoder(modules["target"], policy="fixed:5", rule="rejection")
        decoder.drafter = loops.LoopedDraftDrafter(device, decoder.rule)
        rows = decode(decoder, [3, 4, 5], new_rows([1, 2], [3, 4, 5], max_tokens=10))
        assert device.draft_loop._q.shape[:2] == (2, 4)
        assert all(row.proposed == row.accepted == 6 for row in rows)  # a draft equal to the target is always right


class TestPlan:
    @pytest.mark.parametrize(("width", "prompt", "answer"), [(1, 5, 3), (5, 600, 513), (8, 1024, 512)])
    def test_slabs_take_what_is_planned(self, modules, width, prompt, answer):
        config = modules["target"].config
        shape = ModelShape(
            parameters=config.hidden_size * VOCABULARY * 2,
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            intermediate=config.intermediate_size,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            vocabulary=VOCABULARY,
            tied=False,
        )
        device = open_device(modules["target"], room=Room(1, 1, 1))
        device.reserve(width, answer, prompt)
        layers = [tensor for layer in device.cache.layers for tensor in (layer.keys, layer.values, *layer.stores)]
        held = sum(tensor.numel() * tensor.element_size() for tensor in layers)
        room = Room.holding(width, answer, prompt)
        assert device.cache.room == room
        part = ModelPart(shape, "float32", "cuda")
        assert part.per_token * room.tokens == held
        logits = sum(captured.logits.numel() * 4 for captured in device.graphs._captured.values())
        assert part.kept_logits(sum(room.lines)) == logits
        rest = part.workspace(width, prompt, answer)
        planned = MemoryPlan(part).needed(width, prompt, answer) - MemoryPlan(part).weights - rest
        assert planned - held - logits == 700_000_000  # a CUDA context

    def test_a_draft_takes_room_logits_and_what_it_was_drawn_from(self):
        shape = ModelShape(10_000_000, 2, 32, 48, 4, 2, 8, 152_064, False)
        part = ModelPart(shape, "bfloat16", "cuda")
        alone, both = MemoryPlan(part), MemoryPlan(part, part)
        room = Room.holding(8, 512, 1024)
        more = both.needed(8, 1024, 512) - alone.needed(8, 1024, 512) - part.weights - part.per_token * room.tokens
        assert more == 2 * 152_064 * 8 * (len(room.lines) + 1) + 3 * (4 * 152_064 * 8 * 32)
        assert part.drawn(128) == 3 * (256 << 20)

    def test_powers_of_two(self):
        assert [power_of_two(count) for count in (0, 1, 2, 3, 4, 5, 512, 513)] == [1, 1, 2, 4, 4, 8, 512, 1024]
        assert Room.holding(5, 513, 1).tokens == 8 * 1025 + 1


def test_costs_are_those_of_one_device_and_one_way(modules, tmp_path, monkeypatch):
    """Another GPU in the same machine, or the same one without graphs, is measured for itself."""
    measured, sizes = [], (1, 2, 4, 8, 12, 16, 24, 32, 64)

    def measure(model, *_):
        measured.append(model.place)
        return CostTable(dict.fromkeys(sizes, 1.0))

    monkeypatch.setattr("engine.sampler.cost_table.measure", measure)
    names = ["NVIDIA H200"]
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: names[0])
    captured, eager, plain = (
        open_device(modules["target"]),
        DeviceModel(copy.deepcopy(modules["target"]), VOCABULARY, packed_attention, None, room=SMALL),
        RaggedModel(copy.deepcopy(modules["target"]), VOCABULARY),
    )
    for name in ("NVIDIA H200", "NVIDIA A10"):
        names[0] = name
        for model in (captured, eager, plain) * 2:
            model.device = SimpleNamespace(type="cuda", index=None)
            measured_once(model, "tiny", "bfloat16", 512, tmp_path)
    assert measured == [f"{name}{way}" for name in ("NVIDIA H200", "NVIDIA A10") for way in (" captured", " eager", "")]
    plain.device = torch.device("cpu")
    assert plain.place == "cpu"
