"""A peer that was compiled for another processor is no peer."""

import pytest

from benchmarks.llama import unused

GENERIC = "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | FMA = 1 | OPENMP = 1 | REPACK = 1 | "
NATIVE = "CPU : AVX2 = 1 | AVX512 = 1 | AVX512_VBMI = 1 | AVX512_VNNI = 1 | OPENMP = 1 | "


@pytest.mark.parametrize(
    ("features", "flags", "left_out"),
    [
        (GENERIC, {"avx", "avx2"}, ""),
        (GENERIC, {"avx2", "avx512f"}, "AVX512"),
        (NATIVE, {"avx2", "avx512f", "avx512_vnni"}, ""),
        (NATIVE.replace("AVX512_VNNI = 1", "AVX512_VNNI = 0"), {"avx512f", "avx512_vnni"}, "AVX512_VNNI"),
        ("CPU : AVX512 = 1", {"avx2", "avx512f"}, "AVX2"),
        ("CPU : NEON = 1", set(), ""),
    ],
)
def test_instructions_that_the_peer_leaves_out_are_named(features, flags, left_out):
    assert unused(features, frozenset(flags)) == left_out
