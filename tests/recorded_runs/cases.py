"""What the recorded runs ask for. Six are played from a script, the others are of the small model in int8.

A text under coupled acceptance depends on none of drafter, policy and width, so those may be chosen by measured time
(``auto``, ``goodput``). Under the rejection rule it may depend on what was guessed, so there nothing goes by the clock:
not the number of candidates that are decoded at a time either, since they copy from each other.
"""

from dataclasses import dataclass
from typing import Any

from engine.contract import Request, Sampling, Speculation, Turn

ADD = "Write a Python function add(a, b) that returns the sum of a and b."
ADD_TESTS = "assert add(1, 2) == 3\nassert add(-1, 1) == 0\n"
DOUBLE = "Write a Python function double(x) that returns two times x."
DOUBLE_TESTS = (
    "def test_double():\n    assert double(4) == 8\n\ndef test_double_of_zero():\n    assert double(0) == 0\n"
)
BIGGEST = 'def biggest(numbers):\n    """Return the largest of the numbers."""\n'
BIGGEST_TESTS = ">>> biggest([3, 9, 2])\n9\n>>> biggest([-4, -7])\n-4\n"
ROMAN = "Write roman_to_int(s)."
ROMAN_TESTS = 'assert roman_to_int("XIV") == 14\nassert roman_to_int("MCMXCIV") == 1994\n'
EARLIER = (Turn("user", "What is a list?"), Turn("assistant", "A list holds items in order."))


@dataclass(frozen=True)
class Case:
    """One run: ``scripted``, or of the small model, against ``tests`` (none where empty).

    ``counts``: accepted and proposed drafts are recorded too; they are, where nothing goes by measured time.
    """

    name: str
    request: Request
    tests: str = ""
    scripted: bool = False
    counts: bool = False


def _scripted(name: str, seed: int, count: int, tests: str = ROMAN_TESTS, **more: Any) -> Case:
    sampling = Sampling(max_tokens=more.pop("max_tokens", 512))
    return Case(name, Request(ROMAN, seed, count, sampling=sampling, **more), tests, scripted=True)


def _sampled(
    name: str,
    seed: int,
    count: int,
    way: tuple[str, ...],
    prompt: str = ADD,
    tests: str = ADD_TESTS,
    *,
    sampling: Sampling | None = None,
    **more: Any,
) -> Case:
    speculation = Speculation(*way)
    counts = speculation.policy.startswith("fixed") or speculation.policy == "bass"
    if counts:
        more.setdefault("width", count)
    sampling = sampling or Sampling(max_tokens=40)
    return Case(
        name, Request(prompt, seed, count, sampling=sampling, speculation=speculation, **more), tests, counts=counts
    )


def _short(**options: Any) -> Sampling:
    return Sampling(**({"max_tokens": 36} | options))


CASES = (
    _scripted("scripted: one candidate", 1, 1),
    _scripted("scripted: all recorded candidates", 2, 6),
    _scripted("scripted: more candidates than recorded", 3, 8),
    _scripted("scripted: cut by length", 4, 3, max_tokens=20),
    _scripted("scripted: without tests", 5, 2, tests=""),
    _scripted("scripted: numbered from four", 6, 2, first_candidate=4),
    # The rejection rule, before any run whose drafts go by measured time.
    _sampled("rejection: no drafts", 11, 2, ("none", "fixed:0", "rejection")),
    _sampled("rejection: copied drafts", 12, 4, ("suffix", "fixed:4", "rejection")),
    _sampled("rejection: drafts of a model", 13, 3, ("draft-model", "fixed:3", "rejection")),
    _sampled(
        "rejection: a model's drafts, few at once", 14, 4, ("draft-model", "bass", "rejection"), DOUBLE, DOUBLE_TESTS
    ),
    _sampled("rejection: copies by the heuristic", 15, 5, ("suffix", "bass", "rejection"), DOUBLE, DOUBLE_TESTS),
    _sampled(
        "rejection: the likeliest tokens only",
        16,
        3,
        ("draft-model", "fixed:2", "rejection"),
        sampling=_short(top_k=5, temperature=1.2),
    ),
    _sampled(
        "rejection: penalties",
        17,
        2,
        ("draft-model", "fixed:2", "rejection"),
        sampling=_short(repetition_penalty=1.2, presence_penalty=0.4),
    ),
    _sampled(
        "rejection: a completion", 18, 3, ("suffix", "fixed:3", "rejection"), BIGGEST, BIGGEST_TESTS, mode="completion"
    ),
    # The coupled rule.
    _sampled("coupled: no drafts", 21, 2, ("none", "fixed:0")),
    _sampled("coupled: copied drafts", 22, 8, ("suffix", "fixed:4")),
    _sampled("coupled: copies by the heuristic", 23, 4, ("suffix", "bass"), DOUBLE, DOUBLE_TESTS),
    _sampled("coupled: drafts of a model", 24, 3, ("draft-model", "fixed:3")),
    _sampled("coupled: greedy", 25, 1, ("suffix", "fixed:5"), sampling=Sampling(temperature=0, max_tokens=80)),
    _sampled("coupled: everything automatic", 26, 6, ("auto", "auto"), DOUBLE, DOUBLE_TESTS),
    _sampled("coupled: by goodput", 27, 5, ("suffix", "goodput")),
    _sampled("coupled: copies or a model's drafts", 28, 4, ("hybrid", "goodput")),
    _sampled("coupled: hot and wide", 29, 7, ("suffix", "goodput"), sampling=_short(temperature=1.6, top_p=1.0)),
    _sampled("coupled: a floor of chance", 30, 3, ("suffix", "fixed:3"), sampling=_short(min_p=0.2, top_p=1.0)),
    _sampled("coupled: a small nucleus", 31, 3, ("draft-model", "goodput"), sampling=_short(top_p=0.5, top_k=20)),
    _sampled(
        "coupled: frequency penalty, another temperature for one",
        32,
        3,
        ("suffix", "goodput"),
        sampling=_short(frequency_penalty=0.6),
        overrides={2: _short(temperature=0.2)},
    ),
    _sampled(
        "coupled: stop strings", 33, 4, ("suffix", "fixed:4"), sampling=_short(max_tokens=60, stop=("return", "\n\n\n"))
    ),
    _sampled(
        "coupled: until the first function ends",
        34,
        4,
        ("suffix", "fixed:4"),
        BIGGEST,
        BIGGEST_TESTS,
        sampling=_short(max_tokens=60, code_stop="function"),
        mode="completion",
    ),
    _sampled(
        "coupled: until the first block ends, two at a time",
        35,
        5,
        ("auto", "goodput"),
        sampling=_short(max_tokens=90, code_stop="block"),
        goal="first",
        width=2,
    ),
    _sampled("coupled: after earlier turns", 36, 2, ("suffix", "fixed:3"), turns=EARLIER, first_candidate=3),
)
