"""What is got wrong in comparing candidates by what they do, and in making questions of it."""

from tests.seeded_bugs.bug import Bug

_PURE = "tests/engine/elicitation/test_"

BUGS = (
    Bug(
        "unordered-sets",
        "two sets in different order are different results",
        "engine/elicitation/values.py",
        'if kind in ("set", "dict"):',
        'if kind in ("dict",):',
        (f"{_PURE}values.py",),
    ),
    Bug(
        "nan-unlike-nan",
        "NaN is another result than NaN",
        "engine/elicitation/values.py",
        "return a != a and b != b",
        "return False",
        (f"{_PURE}values.py",),
    ),
    Bug(
        "repr-decides",
        "objects of the candidate's own class are compared by a repr that may lie",
        "engine/elicitation/values.py",
        '_OPAQUE = ("opaque", "large", "function")',
        '_OPAQUE = ("large", "function")',
        (f"{_PURE}values.py",),
    ),
    Bug(
        "endless-decides",
        "the beginning of an endless iterator counts as the whole",
        "engine/elicitation/values.py",
        'not (tag(wire) == "iterator" and wire[1] is not True)',
        "True",
        (f"{_PURE}values.py",),
    ),
    Bug(
        "asked-twice",
        "an input that was asked about is asked about again",
        "engine/elicitation/questions.py",
        "if at in asked:",
        "if at in ():",
        (f"{_PURE}questions.py",),
    ),
    Bug(
        "chance-is-a-result",
        "what changes from run to run is taken for a result",
        "engine/elicitation/outcomes.py",
        "if self.unstable or not self.whole:",
        "if not self.whole:",
        (f"{_PURE}questions.py",),
    ),
    Bug(
        "size-alone",
        "log-probabilities do not count",
        "engine/elicitation/groups.py",
        "n: math.exp(middle if c.mean_logprob is None else c.mean_logprob) * _DOUBTED**c.doubt",
        "n: _DOUBTED**c.doubt",
        (f"{_PURE}questions.py",),
    ),
    Bug(
        "names-are-literals",
        "what a model wrote as an argument need not be a literal",
        "engine/elicitation/suggestions.py",
        "if given is None or expected is UNKNOWN or not _literal(given):",
        "if given is None or expected is UNKNOWN:",
        (f"{_PURE}suggestions.py",),
    ),
    Bug(
        "contradicting-tests",
        "suggested tests that contradict each other are offered together",
        "engine/elicitation/suggestions.py",
        "first.setdefault(entry.suggestion.given, entry)",
        "first[Input((), str(len(first)))] = entry",
        (f"{_PURE}suggestions.py",),
    ),
    Bug(
        "import-before-future",
        "an import is put before those from __future__",
        "engine/elicitation/answers.py",
        "return (first[-1].end_lineno or 0) if first else 0",
        "return 0",
        (f"{_PURE}answers.py", "-k", "imports_go"),
    ),
)
