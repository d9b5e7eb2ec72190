"""The tests of the kernels are worth something: each of these deliberately broken kernels fails one of them."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="triton has no wheel for this platform")

from kernels.attention.triton import Tiling
from tests.kernels.acceptance import test_triton as acceptance
from tests.kernels.attention import test_triton as attention

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Broken:
    """A kernel with one piece of its source replaced."""

    name: str
    kernel: str
    right: str
    wrong: str


ATTENTION = [
    Broken("mask off by one", "attention", "(slot[None, :] <= last[:, None])", "(slot[None, :] < last[:, None])"),
    Broken("window off by one", "attention", "slot[None, :] > last[:, None] - W", "slot[None, :] >= last[:, None] - W"),
    Broken("running sum never fades", "attention", "total = total * fade + ", "total = total + "),
    Broken("prompt length taken for its room", "attention", "0, length, scale,", "0, length + 2, scale,"),
    Broken(
        "splits weigh the same",
        "attention",
        'shares = tl.exp2(tl.load(weight + place, mask=split < splits, other=float("-inf")) - base)',
        'shares = tl.where(tl.load(weight + place, mask=split < splits, other=float("-inf")) > -1e9, 1.0, 0.0)',
    ),
]
ACCEPTANCE = [
    Broken("a tie is cut", "acceptance", "weight = tl.where(x >= floor,", "weight = tl.where(x > floor,"),
    Broken("one id too few", "acceptance", "top, BY_MASS, LIST) < wanted", "top, BY_MASS, LIST) < wanted - 1"),
    Broken("the rejected draft comes back", "acceptance", "rest = tl.exp(weight) - q_here", "rest = tl.exp(weight)"),
    Broken(
        "the residual has the token's noise",
        "acceptance",
        "zeros_like(draft) + _RESIDUAL",
        "zeros_like(draft) + _TOKEN",
    ),
    Broken("nothing left of p", "acceptance", "weight = tl.where(left > 0, rest, weight)", "weight = rest"),
    Broken(
        "what fills up q erases what it repeats", "acceptance", 'log_probs.float(), "amax"', 'log_probs.float(), "amin"'
    ),
    Broken(
        "the last draft is never accepted", "acceptance", "accepted = stop - start - 1", "accepted = stop - start - 2"
    ),
]


def load(broken: Broken, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The kernel's module from its changed source: a file, because Triton reads it again."""
    source = (ROOT / "kernels" / broken.kernel / "triton.py").read_text(encoding="utf-8")
    assert source.count(broken.right) == 1, "the kernel has changed: change this test with it"
    path = folder / "broken.py"
    path.write_text(source.replace(broken.right, broken.wrong), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("broken", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "broken", module)  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def attention_tests():
    for case in ({}, {"window": 5}, {"prompt": 17, "room": 64}):
        attention.check(attention.Case(tiling=attention.SMALL_TILES, **case))
    attention.check(attention.Case(tiling=Tiling(16, 1, 16, 1, keys=16)))


def acceptance_tests():
    acceptance.test_ties_stay_whole(acceptance.WAYS[2])
    acceptance.test_coupled(acceptance.WAYS[0], 0)
    acceptance.test_rejection(acceptance.WAYS[6], False, 1)
    acceptance.test_rejection_of_what_another_distribution_drew(53, acceptance.WAYS[6])
    acceptance.test_where_nothing_is_left_of_p_it_is_drawn_from_itself()
    acceptance.test_the_coin_is_that_of_the_twin_and_a_rejected_draft_never_comes_back()


@pytest.mark.parametrize("broken", ATTENTION, ids=lambda broken: broken.name)
def test_a_broken_attention_is_caught(broken, tmp_path, monkeypatch):
    monkeypatch.setattr(attention, "packed_attention", load(broken, tmp_path, monkeypatch).packed_attention)
    with pytest.raises(AssertionError):
        attention_tests()


@pytest.mark.parametrize("broken", ACCEPTANCE, ids=lambda broken: broken.name)
def test_a_broken_acceptance_is_caught(broken, tmp_path, monkeypatch):
    module = load(broken, tmp_path, monkeypatch)
    for name in ("accept", "dense", "draw"):
        monkeypatch.setattr(acceptance, name, getattr(module, name))
    with pytest.raises(AssertionError):
        acceptance_tests()
