"""Will it fit? Weights, keys and values, head and workspace against the memory that is free now. No torch.

The formulas follow what the sampler does: the prompt's keys and values are kept once, each candidate's own in slabs
that grow in strides, on a GPU in powers of two; logits of all verified tokens are there at once, and every captured
graph keeps its own. On a CPU they were held against the resident memory of the 0.5B model in int8 (docs/models.md); on
a GPU they are arithmetic.
"""

from dataclasses import dataclass

from engine.backends import registry
from engine.models.errors import DoesNotFit
from engine.models.model_shape import ModelShape
from engine.models.room import Room

PROMPT, ANSWER = 1024, 512  # tokens that a plan assumes when nobody says
_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1.0, "int4": 0.5 + 4 / 128}  # scale, zero per 128
_STRIDE = 128  # slots that a slab grows by
_CHUNK = 256  # prompt tokens read at a time
_VERIFIED = 8  # tokens per candidate in one step: drafts and one more
_LOGIT_COPIES = 6  # raw, scaled, probabilities, sorted, and their places, which count twice
DRAWN_BYTES = 256 << 20  # at most, of the distributions that a draft model's tokens were drawn from
_DRAFTS = 32  # of a draft model, in one go
_DRAWN_COPIES = 3  # as they were drawn, put in line, and as the verdict reads them
_MOST = 128
_GB = 1e9


@dataclass(frozen=True)
class ModelPart:
    """One model of the plan: its shape, and the precision its weights are kept in on ``device``, which is a name."""

    shape: ModelShape
    precision: str
    device: str

    @property
    def on_gpu(self) -> bool:
        return not registry.named(self.device).is_host

    @property
    def weights(self) -> int:
        """Bytes, as loaded: int8 on a CPU keeps the embedding in float32 and has a head of its own beside it."""
        shape, size = self.shape, _BYTES[self.precision]
        if not self.on_gpu and self.precision == "int8":
            return shape.layer_weights + 5 * shape.embedding
        if self.precision in ("int8", "int4"):  # embedding in bfloat16; so is a head that is tied to it
            return int(shape.layer_weights * size) + shape.embedding * (2 if shape.tied else 3)
        return int(shape.parameters * size)

    @property
    def per_token(self) -> int:
        """Bytes of keys and values for one token, all layers; int8 on a CPU may need float64 to be exact."""
        size = 2 if self.on_gpu and self.precision != "float32" else {"int8": 8, "float32": 4}.get(self.precision, 2)
        return 2 * self.shape.layers * self.shape.kv_heads * self.shape.head_dim * size

    def kept_logits(self, tokens: int) -> int:
        """Bytes of the logits of so many tokens, as captured graphs keep them for good."""
        return tokens * self.shape.vocabulary * (4 if self.precision == "float32" else 2)

    def drawn(self, rows: int) -> int:
        """Bytes of what a draft model's tokens were drawn from, where the rejection rule asks for it."""
        return _DRAWN_COPIES * min(DRAWN_BYTES, _DRAFTS * rows * self.shape.vocabulary * 4)

    def workspace(self, width: int, prompt: int, answer: int) -> int:
        """Bytes that come and go: the larger of reading a chunk of the prompt and verifying one step."""
        shape, size = self.shape, self.per_token // (2 * self.shape.layers * self.shape.kv_heads * self.shape.head_dim)
        reading = 2 * shape.heads * _CHUNK * prompt * size + 3 * _CHUNK * shape.intermediate * 4
        tokens = width * _VERIFIED
        scores = 2 * shape.heads * tokens * (prompt + answer) * size
        return max(reading, tokens * shape.vocabulary * 4 * _LOGIT_COPIES + scores)


@dataclass(frozen=True)
class MemoryPlan:
    """A target, perhaps a draft, and the bytes that are ``free`` on their device (None where it does not say)."""

    target: ModelPart
    draft: ModelPart | None = None
    free: int | None = None

    @property
    def weights(self) -> int:
        return sum(part.weights for part in self._parts)

    def needed(self, width: int, prompt: int = PROMPT, answer: int = ANSWER) -> int:
        """Bytes for ``width`` candidates at a time, all of them ``answer`` tokens long, after ``prompt`` tokens."""
        workspace = max(part.workspace(width, prompt, answer) for part in self._parts)
        per_token = sum(part.per_token for part in self._parts)
        runtime = registry.named(self.target.device).overhead
        if not self.target.on_gpu:
            slots = prompt + width * -(-answer // _STRIDE) * _STRIDE
            return runtime + self.weights + per_token * slots + workspace
        room = Room.holding(width, answer, prompt)
        kept = self.target.kept_logits(sum(room.lines))
        if self.draft is not None:  # of the draft's passes only each row's last are, and the loop's own
            kept += self.draft.kept_logits(room.rows * (len(room.lines) + 1)) + self.draft.drawn(room.rows)
        return runtime + self.weights + per_token * room.tokens + workspace + kept

    def largest_width(self, prompt: int = PROMPT, answer: int = ANSWER, most: int = _MOST) -> int:
        """How many candidates fit at a time; 0 if not even one does. More candidates than that wait their turn."""
        if self.free is None:
            return most
        return next((width for width in range(most, 0, -1) if self.needed(width, prompt, answer) <= self.free), 0)

    def check(self, name: str) -> None:
        """Raises DoesNotFit, with numbers and what to do, when not even one candidate fits."""
        if self.largest_width(most=1) == 0 and self.free is not None:
            others = "choose a smaller model or a smaller precision"
            if self.draft is not None:
                others = "leave out the draft model, " + others
            raise DoesNotFit(
                f"{name} needs about {_gigabytes(self.needed(1))} GB of {self._memory} memory and "
                f"{_gigabytes(self.free)} GB are free; {others}, close other programs, or load it anyway "
                "with --ignore-fit."
            )

    def sentence(self, candidates: int = 8) -> str:
        """For a user: how well it fits."""
        if self.free is None:
            return f"needs about {_gigabytes(self.needed(candidates))} GB for {candidates} candidates"
        width = self.largest_width(most=candidates)
        numbers = f"{_gigabytes(self.needed(max(1, min(width, candidates))))} of {_gigabytes(self.free)} GB free"
        if width == candidates:
            return f"fits, {candidates} candidates at a time ({numbers})"
        return f"fits, {width} at a time ({numbers})" if width else f"does not fit ({numbers})"

    @property
    def _parts(self) -> tuple[ModelPart, ...]:
        return (self.target,) if self.draft is None else (self.target, self.draft)

    @property
    def _memory(self) -> str:
        return registry.named(self.target.device).memory


def _gigabytes(size: int) -> str:
    return f"{size / _GB:.1f}"
