"""What speculative samplers get wrong, and the kernels below them."""

from tests.seeded_bugs.bug import Bug

BUGS = (
    Bug(
        "mask",
        "the mask is off by one: a token does not see itself",
        "kernels/attention/torch.py",
        "visible = key_positions <= positions[..., None]",
        "visible = key_positions < positions[..., None]",
        ("tests/kernels/attention/test_attention.py", "tests/engine/sampler/test_ragged_model.py"),
    ),
    Bug(
        "mask-compiled",
        "the same in the loops of a CPU",
        "kernels/attention/loops.py",
        "long(0)), at.add(slot, long(1))]",
        "long(0)), slot]",
        ("tests/kernels/attention/test_native.py", "tests/engine/sampler/test_ragged_model.py"),
    ),
    Bug(
        "surplus",
        "int8 weights made unsigned, and what that adds not taken off rows whose inputs sum to less than nothing",
        "kernels/int8_linear/loops.py",
        "at.sitofp(at.sub(whole, body.splat(surplus, lanes)), floats)",
        "at.uitofp(at.sub(whole, body.splat(surplus, lanes)), floats)",
        ("tests/kernels/int8_linear/test_native.py",),
    ),
    Bug(
        "length",
        "a stale length: rejected drafts are not taken off a row",
        "engine/sampler/decoder.py",
        "[row.position - 1 for row in rows],\n        )",
        "[row.position - 1 + row.proposed - row.accepted for row in rows],\n        )",
        ("tests/engine/sampler/test_lossless.py", "-k", "d6_a_row_is or d8 or d16"),
    ),
    Bug(
        "draft-length",
        "a stale length in the draft's cache: what it was fed is taken for what was said",
        "engine/sampler/drafters/draft_model.py",
        "_common_length(self._fed[index], wanted)",
        "len(self._fed[index])",
        ("tests/engine/sampler/test_lossless.py", "-k", "d1_"),
    ),
    Bug(
        "purpose",
        "a wrong purpose in the counter: the residual is drawn by the numbers that decided the rejection",
        "kernels/acceptance/torch.py",
        "draw(p_ids, leftover.log(), at_stop, RESIDUAL)",
        "draw(p_ids, leftover.log(), at_stop, ACCEPT)",
        ("tests/kernels/acceptance/test_acceptance.py", "tests/engine/sampler/test_rejection.py", "-k", "number or d9"),
    ),
    Bug(
        "bonus",
        "the extra token after a fully accepted draft comes from the draft",
        "engine/sampler/decoder.py",
        "row.commit([*drafts[:count], token], ",
        "row.commit([*drafts[:count], drafts[-1] if 0 < count == len(drafts) else token], ",
        ("tests/engine/sampler/test_properties.py", "tests/engine/sampler/test_rejection.py", "-k", "any or d9"),
    ),
    Bug(
        "R4",
        "a sampled draft is dropped, unverified, by a look at its own value",
        "engine/sampler/policies/__init__.py",
        "        return proposals\n",
        "        return proposals.cut([len(row) - (row[-1:] == [0]) for row in proposals.tokens])\n",
        ("tests/engine/sampler/test_rejection.py", "-k", "d9"),
    ),
    Bug(
        "penalty",
        "a penalty does not know the drafts before its position",
        "engine/sampler/acceptance.py",
        "row.place(tokens[:count])",
        "row.place()",
        ("tests/engine/sampler/test_lossless.py", "tests/engine/sampler/test_rejection.py", "-k", "d11 or penalised"),
    ),
)
