"""What fits is arithmetic, and what does not is refused with numbers before it is loaded."""

import pytest

from engine.backends import cuda
from engine.backends.device import Gpu
from engine.models import names, preparation
from engine.models.catalog import catalog
from engine.models.errors import DoesNotFit, DownloadFailed
from engine.models.memory_plan import MemoryPlan, ModelPart
from engine.models.preparation import prepare

GIB = 1 << 30


def part(name: str, precision: str, device: str = "cuda") -> ModelPart:
    return ModelPart(catalog().find(name).shape, precision, device)


class TestWeights:
    @pytest.mark.parametrize(
        ("name", "precision", "device", "gigabytes"),
        [
            ("qwen2.5-coder-7b", "bfloat16", "cuda", 15.231),  # two bytes for each of 7,615,616,512
            ("qwen2.5-coder-7b", "int8", "cuda", 6.526 + 1.090 + 0.545),  # layers, embedding, head
            ("qwen2.5-coder-7b", "int4", "cuda", 6.526 * (0.5 + 4 / 128) + 1.090 + 0.545),
            ("qwen2.5-coder-1.5b", "int8", "cuda", 1.310 + 0.467),  # its head is the embedding
            ("qwen2.5-coder-0.5b", "int8", "cpu", 0.358 + 5 * 0.13613),  # embedding in float32, and a head of its own
            ("qwen2.5-coder-0.5b", "float32", "cpu", 4 * 0.49403),
        ],
    )
    def test_bytes(self, name, precision, device, gigabytes):
        assert part(name, precision, device).weights / 1e9 == pytest.approx(gigabytes, rel=1e-3)

    def test_keys_and_values_of_a_token(self):
        assert part("qwen2.5-coder-7b", "int4").per_token == 2 * 28 * 4 * 128 * 2
        assert part("qwen2.5-coder-0.5b", "int8", "cpu").per_token == 2 * 24 * 2 * 64 * 8  # float64, at most
        assert part("qwen2.5-coder-0.5b", "bfloat16", "cpu").per_token == 2 * 24 * 2 * 64 * 2


class TestSmallGpus:
    def test_7b_in_int4_at_8_candidates_of_4k_inside_8_gb(self):
        """However the 4,096 tokens are shared between prompt and answer. A suffix drafter needs no memory."""
        plan = MemoryPlan(part("qwen2.5-coder-7b", "int4"), free=8 * GIB)
        for prompt in (1, 1024, 2048, 3584):
            assert plan.largest_width(prompt, 4096 - prompt) >= 8

    def test_the_same_in_bfloat16_does_not_fit(self):
        plan = MemoryPlan(part("qwen2.5-coder-7b", "bfloat16"), free=8 * GIB)
        assert plan.largest_width() == 0
        assert plan.sentence().startswith("does not fit (16.")

    def test_1_5b_in_bfloat16_fits_where_it_is_the_default(self):
        assert MemoryPlan(part("qwen2.5-coder-1.5b", "bfloat16"), free=6 * GIB).largest_width() >= 8

    def test_a_draft_model_takes_its_share(self):
        alone = MemoryPlan(part("qwen2.5-coder-7b", "bfloat16"), free=24 * GIB)
        both = MemoryPlan(alone.target, part("qwen2.5-coder-0.5b", "bfloat16"), alone.free)
        assert both.weights - alone.weights == 2 * catalog().find("qwen2.5-coder-0.5b").parameters
        assert 8 <= both.largest_width(4096, 4096) < alone.largest_width(4096, 4096)


class TestWidth:
    def test_more_memory_more_candidates(self):
        target = part("qwen2.5-coder-0.5b", "int8", "cpu")
        widths = [MemoryPlan(target, free=free).largest_width(512, 512) for free in range(10**9, 10**10, 10**8)]
        assert widths == sorted(widths)
        assert widths[0] == 0
        assert widths[-1] > 64

    def test_the_largest_one_fits_and_the_next_does_not(self):
        plan = MemoryPlan(part("qwen2.5-coder-0.5b", "int8", "cpu"), free=3 * 10**9)
        width = plan.largest_width()
        assert plan.needed(width) <= plan.free < plan.needed(width + 1)
        assert plan.sentence(candidates=100) == f"fits, {width} at a time (3.0 of 3.0 GB free)"

    def test_a_device_that_does_not_say_is_given_the_benefit(self):
        plan = MemoryPlan(part("qwen2.5-coder-7b", "bfloat16"))
        plan.check("it")
        assert "needs about" in plan.sentence()


class TestAgainstMeasurements:
    """Resident memory of the 0.5B model on Linux at 2,048 + 528 tokens and 8 candidates: see docs/models.md."""

    @pytest.mark.parametrize(("precision", "measured"), [("int8", 2.53e9), ("float32", 3.11e9)])
    def test_the_plan_is_near(self, precision, measured):
        plan = MemoryPlan(part("qwen2.5-coder-0.5b", precision, "cpu"))
        assert plan.needed(8, 2048, 528) == pytest.approx(measured, rel=0.1)


class TestRefused:
    """A GPU with 1 GB free, as the driver tells it."""

    @pytest.fixture(autouse=True)
    def small_gpu(self, monkeypatch):
        gpu = Gpu("Small", 8 * GIB, GIB, "1", "cuda")
        monkeypatch.setattr(cuda.Cuda, "why_not", lambda _: "")
        monkeypatch.setattr(cuda, "nvidia_gpus", lambda: (gpu,))
        monkeypatch.setattr(cuda, "ask_driver", lambda: (gpu,))

    def ask(self, name="qwen2.5-coder-7b", **options):
        return prepare(name, device="cuda", progress=lambda _: None, cancelled=lambda: False, offline=True, **options)

    def test_before_anything_is_fetched(self, home):
        said = r"qwen2\.5-coder-7b needs about 16\.\d GB of GPU memory and 1\.1 GB are free; choose a smaller model .*"
        with pytest.raises(DoesNotFit, match=said + "--ignore-fit"):
            self.ask(must_fit=True)
        assert not home.exists()

    def test_unless_told_otherwise(self, home):
        with pytest.raises(DownloadFailed, match="not on this machine yet"):
            self.ask()

    def test_a_file_is_planned_by_its_header(self, home, tiny_gguf):
        named = names.resolve(str(tiny_gguf()), device="cuda")
        plan = preparation.plan(named, preparation.shape_of(named))
        assert plan.free == GIB
        assert plan.largest_width(most=8) == 8
