"""How large a model is inside: what a memory plan needs, and no more."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelShape:
    """``parameters`` counts each weight once, so a head tied to the embedding not at all.

    ``heads`` are the query's; ``kv_heads`` times ``head_dim`` numbers are cached per layer and token, twice.
    ``context`` in tokens, 0 where the file does not say.
    """

    parameters: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    context: int = 0

    @property
    def embedding(self) -> int:
        """Weights of the embedding; as many again in a head of its own."""
        return self.vocabulary * self.hidden

    @property
    def layer_weights(self) -> int:
        """All that is neither embedding nor head: nearly all of it is linear layers."""
        return self.parameters - self.embedding * (1 if self.tied else 2)
