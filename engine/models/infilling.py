"""How models that can fill a gap in a file want to be asked: each family has its own control tokens.

Bavarian et al., Efficient Training of Language Models to Fill in the Middle (arXiv 2207.14255).
"""

from collections.abc import Callable

from engine.contract import BadRequest

PREFIX, SUFFIX = "{prefix}", "{suffix}"  # where the texts before and after the gap go

# What a model writes after these fills the gap. A model has all the control tokens of its layout.
_LAYOUTS = (
    ("<|fim_prefix|>", PREFIX, "<|fim_suffix|>", SUFFIX, "<|fim_middle|>"),  # Qwen, CodeGemma
    ("<fim_prefix>", PREFIX, "<fim_suffix>", SUFFIX, "<fim_middle>"),  # StarCoder, Granite, Stable Code
    ("<fim-prefix>", PREFIX, "<fim-suffix>", SUFFIX, "<fim-middle>"),  # SantaCoder
    ("<｜fim▁begin｜>", PREFIX, "<｜fim▁hole｜>", SUFFIX, "<｜fim▁end｜>"),  # DeepSeek
    ("▁<PRE>", PREFIX, "▁<SUF>", SUFFIX, "▁<MID>"),  # CodeLlama
    ("[SUFFIX]", SUFFIX, "[PREFIX]", PREFIX),  # Codestral
)
_SEPARATORS = ("<|fim_pad|>", "<fim_pad>", "<fim-pad>", "▁<EOT>", "<|file_sep|>", "<file_sep>", "<|file_separator|>")
_REPOSITORIES = ("<|repo_name|>", "<repo_name>", "<reponame>")
# Marks of a file's parts, of files and of repositories: none is ever part of an answer.
FILE_MARKS = (
    *(mark for layout in _LAYOUTS for mark in layout if mark not in (PREFIX, SUFFIX)),
    *_SEPARATORS,
    *_REPOSITORIES,
)


def layout_of(id_of: Callable[[str], int | None]) -> tuple[str, ...]:
    """The layout whose control tokens the vocabulary holds; ``id_of`` gives a token's id. Raises BadRequest."""
    for layout in _LAYOUTS:
        if all(part in (PREFIX, SUFFIX) or id_of(part) is not None for part in layout):
            return layout
    raise BadRequest("This model cannot fill in the middle: it has no tokens for it; choose the completion mode.")
