"""The device's door on a CPU: the torch twin in the kernel's place, and graphs that are replayed by running again."""

import copy

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine.contract import Sampling
from engine.models.room import SIZES, Room, bucket
from engine.sampler.device_model import DeviceModel
from engine.sampler.fixed_cache import FixedLayer, FixedStep
from engine.sampler.graphs import Graphs, Key
from engine.sampler.ragged_model import RaggedModel
from kernels.attention.torch import packed_attention
from tests.engine.sampler.device import Refuse, Rerun, Warm
from tests.engine.sampler.running import decode, new_rows, open_decoder, tokens_of
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy

SMALL = Room(rows=4, slots=8, prompt=16)


def open_device(stock, capture=None, room=SMALL, attention=packed_attention):
    return DeviceModel(copy.deepcopy(stock), VOCABULARY, attention, capture or Rerun(), room=room)


def random_tokens(count, generator):
    return torch.randint(3, VOCABULARY, (count,), generator=generator).tolist()


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "starcoder2", "gpt_oss", "opt"])
def test_any_rows_and_lengths_equal_the_ragged_model(architecture):
    """Rows come, grow past the room, are rolled back, leave and are joined by others; buckets are padded."""
    stock = build(architecture)
    plain, device = RaggedModel(copy.deepcopy(stock), VOCABULARY), open_device(stock)
    generator = torch.Generator().manual_seed(1)
    prompt = random_tokens(21, generator)
    torch.testing.assert_close(device.prefill(prompt).logits, plain.prefill(prompt).logits, rtol=0, atol=1e-4)
    lengths = [len(prompt)] * 3
    for step, counts in enumerate([[4, 1, 6], [1, 1, 1], [3, 9, 1], [2, 2, 2], [5, 1, 1], [1, 7, 1, 1, 2, 1]]):
        lengths += [len(prompt)] * (len(counts) - len(lengths))
        fresh = [random_tokens(count, generator) for count in counts]
        for last_only in (False, True):
            want = plain.forward(fresh, lengths, last_only=last_only).logits
            got = device.forward(fresh, lengths, last_only=last_only).logits
            torch.testing.assert_close(got, want, rtol=0, atol=1e-4)
        lengths = [length + max(1, count - 2) for length, count in zip(lengths, counts, strict=True)]
        if step == 3:
            plain.keep([2, 0])
            device.keep([2, 0])
            lengths = [lengths[2], lengths[0], len(prompt)]
    assert device.cache.room == Room(rows=8, slots=16, prompt=32)


def test_a_prompt_in_chunks_and_a_follow_up_read_only_what_is_new(monkeypatch):
    monkeypatch.setattr("engine.sampler.device_model.PREFILL_CHUNK", 7)
    stock = build()
    plain, device = RaggedModel(copy.deepcopy(stock), VOCABULARY), open_device(stock)
    generator = torch.Generator().manual_seed(2)
    prompt, answers = random_tokens(20, generator), [random_tokens(5, generator) for _ in range(2)]
    read = []
    for model in (plain, device):
        model.prefill(prompt, lambda done: True)
        model.forward(answers, [20, 20])
        model.remember(1, answers[1])
        model.forget_rows()
    follow_up = prompt + answers[1] + random_tokens(3, generator)
    want = plain.prefill(follow_up).logits
    torch.testing.assert_close(
        device.prefill(follow_up, lambda done: read.append(done) or True).logits, want, rtol=0, atol=1e-4
    )
    assert read == [28]  # 20 of the prompt and 4 of the answer were known
    torch.testing.assert_close(
        device.forward([[3, 4]], [28]).logits, plain.forward([[3, 4]], [28]).logits, rtol=0, atol=1e-4
    )
    device.clear()
    assert device.prefill([5, 6, 7], lambda done: False) is None
    torch.testing.assert_close(device.prefill([5, 6, 7]).logits, plain.prefill([5, 6, 7]).logits, rtol=0, atol=1e-4)


def test_graphs_are_captured_largest_first_and_replayed_for_every_length():
    capture = Rerun()
    device = open_device(build(), capture, Room(rows=4, slots=64, prompt=16))
    device.prefill([3, 4, 5, 6])
    for round_ in range(6):
        device.forward([[3], [4, 5], [6]], [4 + round_] * 3)
    assert capture.sizes == sorted(capture.sizes, reverse=True)
    assert set(capture.sizes) <= set(SIZES)
    assert capture.replays == 6
    captured = len(capture.sizes)
    device.prefill([7] * 9)  # lengths 5, 500, 5: same graphs
    device.forward([[3]], [9])
    device.prefill([3])
    device.forward([[3, 4]], [1])
    assert len(capture.sizes) == captured
    device.forward([[3]] * 5, [1] * 5)  # a fifth row: other room, other graphs
    assert len(capture.sizes) > captured


def test_where_memory_runs_out_in_growing_the_old_room_still_serves(monkeypatch):
    """The second layer finds no memory for a larger room; fewer rows go on in what there is."""
    stock, allocated = build(), FixedLayer._allocated
    plain, device = RaggedModel(copy.deepcopy(stock), VOCABULARY), open_device(stock)
    for model in (plain, device):
        model.prefill([3, 4, 5])
        model.forward([[6, 7], [8, 9]], [3, 3])

    def short(layer, rows, *rest):
        if rows > 4 and layer is device.cache.layers[1]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return allocated(layer, rows, *rest)

    monkeypatch.setattr(FixedLayer, "_allocated", short)
    with pytest.raises(torch.OutOfMemoryError):
        device.forward([[3]] * 5, [5, 5, 3, 3, 3])
    assert device.cache.room == SMALL
    want = plain.forward([[3], [4, 5]], [5, 5]).logits
    torch.testing.assert_close(device.forward([[3], [4, 5]], [5, 5]).logits, want, rtol=0, atol=1e-4)
    monkeypatch.undo()
    device.forward([[3]] * 5, [6] * 2 + [3] * 3)
    device.release()
    assert device.cache.room == Room(rows=1, slots=SMALL.slots, prompt=SMALL.prompt)
    want = plain.forward([[6, 7, 3], [8]], [3, 3]).logits
    torch.testing.assert_close(device.forward([[6, 7, 3], [8]], [3, 3]).logits, want, rtol=0, atol=1e-4)


def test_a_model_that_cannot_be_captured_runs_all_the_same_and_says_why():
    stock = build()
    plain, device = RaggedModel(copy.deepcopy(stock), VOCABULARY), open_device(stock, Refuse())
    for model in (plain, device):
        model.prefill([3, 4, 5])
    torch.testing.assert_close(
        device.forward([[6, 7]], [3]).logits, plain.forward([[6, 7]], [3]).logits, rtol=0, atol=1e-4
    )
    assert device.note == (
        "The model cannot be captured as a graph (operation not permitted when stream is capturing)."
    )


def test_the_key_holds_every_integer_that_shapes_a_launch():
    room = Room(rows=8, slots=512, prompt=1024)
    keys = {Key(8, room, False), Key(8, room, True), Key(16, room, False)}
    keys |= {Key(8, room.grown(**more), False) for more in ({"rows": 9}, {"slots": 513}, {"prompt": 1025})}
    assert len(keys) == 6
    assert room.grown(rows=9, slots=512, prompt=5) == Room(rows=16, slots=512, prompt=1024)


def test_buckets():
    assert [bucket(tokens) for tokens in (1, 2, 3, 8, 9, 33, 256)] == [1, 2, 4, 8, 12, 40, 256]
    assert bucket(257) is None
    assert Graphs(None).find(Key(1, SMALL, False), pytest.fail, pytest.fail) is None


def test_padding_of_a_bucket_goes_where_nothing_is_read():
    step = FixedStep(rows=4, tokens=8, trash=16, device=torch.device("cpu"), attention=packed_attention)
    step.load([[5, 6, 7], [8]], [20, 31], prefix_length=20)
    assert step.tokens.tolist() == [5, 6, 7, 8, 0, 0, 0, 0]
    assert step.rows.tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    assert step.token_slots.tolist() == [0, 1, 2, 11, 16, 16, 16, 16]
    assert step.flat_positions.tolist() == [20, 21, 22, 31, 0, 0, 0, 0]
    assert step.starts.tolist() == [0, 3, 4, 4, 4]
    assert step.last.tolist() == [2, 3, 3, 3]
    assert step.prefix.tolist() == [20]


class Watch(TorchDispatchMode):
    """Names of operations that a graph cannot hold: they ask the device for a value, or bake one of the host's in."""

    FORBIDDEN = ("_local_scalar_dense", "item", "nonzero", "equal", "is_nonzero", "masked_select", "lift_fresh")

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.__name__.split(".")[0]
        by_mask = name == "index" and any(part is not None and part.dtype == torch.bool for part in args[1])
        if by_mask or name in self.FORBIDDEN:
            self.seen.add(name)
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma2", "starcoder2", "gpt_neox", "opt"])
def test_a_captured_pass_asks_the_device_nothing(architecture):
    def attention(query, prefix, suffix, *line, **options):
        return query.new_zeros(*query.shape[:2], suffix[1].shape[3])

    device = open_device(build(architecture), attention=attention)
    device.prefill([3, 4, 5])
    with torch.inference_mode():
        step = device.new_step(8)
        step.load([[3], [4, 5]], [3, 3], 3)
        for last_only in (False, True):
            with Watch() as watch:
                device.run(step, last_only)
            assert not watch.seen


@pytest.mark.parametrize("drafter", ["none", "suffix", "draft-model"])
def test_whole_answers_are_those_of_the_ragged_model(drafter):
    """Behind the device's door: whatever was guessed, the tokens are those of plain decoding."""
    stock, prompt = build(spread=0.4), [3, 4, 5, 6, 3, 4, 5]
    sampling = Sampling(temperature=0.9, top_p=0.9, max_tokens=30)
    texts = []
    for on_device in (False, True):
        decoder = open_decoder(stock, drafter=drafter, draft=stock)
        if on_device:
            decoder.target = open_device(stock)
            if drafter == "draft-model":
                decoder.drafter.model = open_device(stock)
        texts.append(
            tokens_of(decode(decoder, prompt, new_rows(range(1, 6), prompt, max_tokens=30, sampling=sampling)))
        )
    assert texts[0] == texts[1]


def test_the_kernel_itself_in_the_interpreter():
    triton_attention = pytest.importorskip(
        "kernels.attention.triton", reason="triton has no wheel for this platform"
    ).packed_attention
    stock = build("gpt_oss")  # windows and sinks
    plain = RaggedModel(copy.deepcopy(stock), VOCABULARY)
    device = open_device(stock, attention=triton_attention, capture=Refuse())
    for model in (plain, device):
        model.prefill([3, 4, 5, 6, 7, 8, 9])
    fresh = [[4, 5, 6], [7]]
    torch.testing.assert_close(
        device.forward(fresh, [7, 7]).logits, plain.forward(fresh, [7, 7]).logits, rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("rule", ["coupled", "rejection"])
@pytest.mark.parametrize(("capture", "length"), [(Warm, 1), (Rerun, 3), (Refuse, 3)])
def test_the_looped_draft_drafts_what_the_plain_one_does(capture, length, rule):
    """A draft equal to the target is always right, and one that is not changes no token."""
    pytest.importorskip("triton", reason="triton has no wheel for this platform")
    from engine.sampler.drafters import draft_loop as loops

    stock, prompt = build(spread=0.4), [3, 4, 5, 6]
    samplings = {1: Sampling(temperature=0.9, top_p=0.9), 2: Sampling(temperature=0), 3: Sampling(temperature=1.2)}
    found = []
    for looped in (False, True):
        decoder = open_decoder(stock, drafter="draft-model", draft=stock, policy=f"fixed:{length}", rule=rule)
        if looped:
            decoder.drafter = loops.LoopedDraftDrafter(open_device(stock, capture()), decoder.rule)
        rows = decode(decoder, prompt, new_rows([1, 2, 3], prompt, max_tokens=9, sampling=samplings))
        found.append([(row.tokens, row.proposed, row.accepted) for row in rows])
    assert found[0] == found[1]
    assert all(proposed == accepted > 0 for _, proposed, accepted in found[1])


def test_a_draft_that_is_not_the_target_is_judged_by_what_it_was_drawn_from():
    """The rejection rule: the loop's dense q and the plain way's sparse one lead to the same tokens."""
    pytest.importorskip("triton", reason="triton has no wheel for this platform")
    from engine.sampler.drafters import draft_loop as loops

    stock, prompt = build(spread=0.4), [3, 4, 5, 6]
    other = noisy_copy(stock, 0.08)
    samplings = {1: Sampling(temperature=0.9, top_p=0.9), 2: Sampling(temperature=0), 3: Sampling(temperature=1.2)}
    found = []
    for looped in (False, True):
        decoder = open_decoder(stock, drafter="draft-model", draft=other, policy="fixed:3", rule="rejection")
        if looped:
            decoder.drafter = loops.LoopedDraftDrafter(open_device(other), decoder.rule)
        # Rows that may draft fewer tokens than others: their part of q is shorter.
        rows = [new_rows([n], prompt, max_tokens=6 + n, sampling=samplings)[0] for n in (1, 2, 3)]
        rows = decode(decoder, prompt, rows)
        found.append([(row.tokens, row.proposed, row.accepted) for row in rows])
    assert found[0] == found[1]
    assert any(0 < accepted < proposed for _, proposed, accepted in found[1])
