"""Compile every kernel to machine code for GPUs that are not here: a wrong type or layout shows without one.

Run on its own, with the interpreter off: triton decides between the two when it is imported. Prints one line a kernel.
"""

import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels.acceptance import triton as acceptance
from kernels.attention import triton as attention
from kernels.philox import triton as philox

UNALIGNED = {"seeds", "candidates", "counters", "positions", "prefix_length"}  # parts of one tensor
SHARED = {80: 163 << 10, 90: 227 << 10, 89: 99 << 10}  # bytes of shared memory that one program may have
HALF, SINGLE, WORD, LONG = "*bf16", "*fp32", "*i32", "*i64"
COUNTER = dict.fromkeys(("seeds", "candidates", "counters"), LONG)
LOGITS = dict.fromkeys(("logits", "raw", "q_logits"), HALF)
SINGLES = ["cuts", "sums", "pieces", "tops", "bounds", "totals", "raw_totals", "values", "floors", "scores"]
SINGLES += ["q_cuts", "q_floors", "q_totals"]
WORDS = ["counts", "ids", "drafts", "tokens", "stays", "q_places", "starts", "result"]
VERDICT = LOGITS | COUNTER | dict.fromkeys(SINGLES, SINGLE) | dict.fromkeys(WORDS, WORD)
ATTENTION = {
    **dict.fromkeys(("query", "prompt_keys", "prompt_values", "suffix_keys", "suffix_values", "out", "sinks"), HALF),
    **dict.fromkeys(("starts", "positions", "prefix_length"), LONG),
    "partial": SINGLE,
    "weight": SINGLE,
    "scale": "fp32",
    "softcap": "fp32",
}
SIZES = {"HEADS": 28, "RATIO": 7, "DIM": 128, "VALUE_DIM": 128, "BLOCK_DIM": 128, "BLOCK_VALUE": 128, "WINDOW": 0}
WIDE = {"HEADS": 16, "RATIO": 2, "DIM": 256, "VALUE_DIM": 256, "BLOCK_DIM": 256, "BLOCK_VALUE": 256, "WINDOW": 1024}
TILES = {"HAS_SOFTCAP": False, "SUFFIX_ROWS": 16, "QUERIES": 2, "BLOCK_ROWS": 32}


def compile_(kernel, types: dict[str, str], constants: dict[str, object], capability: int, **options: int) -> None:
    """Raises what the compiler raises; fails on a kernel that needs more shared memory than there is."""
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in names}
    at = {name: (index,) for index, name in enumerate(names)}
    # As at a real launch, pointers and strides are multiples of 16; what is never specialised is not.
    plain = {names[index] if isinstance(index, int) else index for index in kernel.do_not_specialize or ()}
    anyhow = {parameter.name for parameter in kernel.params if parameter.do_not_specialize_on_alignment}
    assert anyhow >= UNALIGNED & set(names), f"{kernel.__name__} would be compiled again for other lengths"
    aligned = [
        name
        for name in names
        if (signature[name].startswith("*") and name not in anyhow)
        or (signature[name] == "i32" and "_" in name and name not in plain)
    ]
    source = ASTSource(
        kernel,
        signature,
        {at[name]: value for name, value in constants.items()},
        {at[name]: [["tt.divisibility", 16]] for name in aligned},
    )
    compiled = triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"enable_fp_fusion": False, **options}
    )
    assert compiled.asm["cubin"]
    assert compiled.metadata.shared <= SHARED[capability], f"{kernel.__name__} needs too much shared memory"
    print(kernel.__name__, capability, compiled.metadata.shared)


def compile_chosen(dim: int, bytes_: int) -> None:
    """The largest tiles that are chosen for such heads, for the GPU with the least shared memory."""
    chosen = attention.Tiling.choose(256, 8, 7, 4, dim * bytes_, 1024, 512, 132)
    sizes = SIZES | dict.fromkeys(("DIM", "VALUE_DIM", "BLOCK_DIM", "BLOCK_VALUE"), dim)
    tiles = {"PROMPT_ROWS": chosen.prompt_rows, "SUFFIX_ROWS": chosen.suffix_rows, "KEYS": chosen.keys}
    tiles["QUERIES"] = chosen.suffix_rows // 7
    types = ATTENTION if bytes_ == 2 else {name: SINGLE if kind == HALF else kind for name, kind in ATTENTION.items()}
    options = {"num_warps": chosen.warps, "num_stages": chosen.stages}
    compile_(attention._partial_kernel, types, sizes | TILES | tiles, 89, **options)


def compile_all() -> None:
    tile = attention._partial_kernel
    for rows, warps in ((16, 4), (128, 8)):
        compile_(tile, ATTENTION, SIZES | TILES | {"PROMPT_ROWS": rows, "KEYS": 64}, 90, num_warps=warps, num_stages=2)
    compile_(tile, ATTENTION, SIZES | TILES | {"PROMPT_ROWS": 128, "KEYS": 64}, 89, num_warps=8, num_stages=2)
    wide = WIDE | TILES | {"PROMPT_ROWS": 64, "KEYS": 32, "HAS_SOFTCAP": True, "QUERIES": 8}
    compile_(tile, ATTENTION, wide, 80, num_warps=8, num_stages=2)
    for dim, bytes_ in ((256, 2), (128, 4), (256, 4)):
        compile_chosen(dim, bytes_)
    merge = {
        "HEADS": 28,
        "VALUE_DIM": 128,
        "BLOCK_VALUE": 128,
        "HAS_SINKS": True,
        "BLOCK_SPLITS": 64,
        "JOINED": attention.JOINED,
    }
    compile_(attention._merge_kernel, ATTENTION, merge, 90, num_warps=2)
    compile_(acceptance._sum_kernel, VERDICT, {"CHUNK": acceptance.CHUNK, "PIECE": acceptance.PIECE}, 90)
    compile_(acceptance._bound_kernel, VERDICT, {"CHUNKS": 64, "PIECES": 1024}, 90)
    compile_(acceptance._count_kernel, VERDICT, {"CHUNK": acceptance.CHUNK}, 90)
    compile_(acceptance._list_kernel, VERDICT, {"CHUNK": acceptance.CHUNK, "CHUNKS": 64}, 90)
    for judged, drawn in ((False, False), (True, False), (True, True)):
        flags = {"PURPOSE": 0, "IS_REJECTION": judged, "HAS_Q": drawn, "CHUNKS": 64, "LIST": acceptance.LIST}
        compile_(acceptance._choose_kernel, VERDICT, flags, 90)
    compile_(acceptance._leading_kernel, VERDICT, {"BLOCK": 128}, 90, num_warps=1)
    uniform = {"out": SINGLE, **dict.fromkeys(("seed", "candidate", "position", "index"), LONG)}
    compile_(philox._uniform_kernel, uniform, {"BLOCK": 256}, 90)


if __name__ == "__main__":
    sys.exit(compile_all())
