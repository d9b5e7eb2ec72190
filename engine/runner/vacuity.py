"""Whether tests can fail at all: they are run on candidates that do nothing, and must not pass with each of them."""

from engine.runner import forms

SENTENCE = (
    "Your tests cannot fail: they pass as well with a candidate that does nothing. Assert what its functions return, "
    "in code that runs: at the top level, or in functions named test_..."
)
BY_COMMAND = "Your commands cannot fail: they leave with exit code 0 as well when the candidate cannot even start."
NO_OUTPUT = "Your tests want no output at all, which is what an empty program prints; write what must come out."

# Whatever is asked of it, it gives another one of its kind. No two are equal, and TRUE says what they are in an ``if``.
_ANYTHING = """
class Nothing:
    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Nothing()
    def __call__(self, *arguments, **keywords):
        return Nothing()
    def __bool__(self):
        return TRUE
    def __len__(self):
        return int(TRUE)
    def __iter__(self):
        return iter(())
    def __enter__(self):
        return Nothing()
    def __exit__(self, *arguments):
        return False
    def __mro_entries__(self, bases):
        return ()
    def __eq__(self, other):
        return False
    __hash__ = object.__hash__
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = lambda self, other: TRUE
    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __call__
    __truediv__ = __rtruediv__ = __mod__ = __neg__ = __abs__ = __round__ = __call__
    def __setitem__(self, key, value):
        pass

def __getattr__(name):
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return Nothing()
"""
_NONE = """
def nothing(*arguments, **keywords):
    return None

def __getattr__(name):
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return nothing
"""
# That which is false comes first: a loop that waits for something ends with it.
_OF_PYTHON = (f"TRUE = False\n{_ANYTHING}", f"TRUE = True\n{_ANYTHING}", _NONE)
ENTRY = "nothing_at_all"  # what ``check(candidate)`` is given


def candidates(source: forms.TestSource) -> tuple[str, ...]:
    """Candidates that do nothing, for tests of that form."""
    if source.form == forms.COMMAND:
        return ("raise SystemExit(1)\n",)
    return ("pass\n",) if source.form == forms.EXAMPLES else _OF_PYTHON


def sentence(source: forms.TestSource) -> str:
    return {forms.COMMAND: BY_COMMAND, forms.EXAMPLES: NO_OUTPUT}.get(source.form, SENTENCE)
