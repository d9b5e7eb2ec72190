"""Exceptions: what they carry besides their arguments, and tracebacks, which cross as names and lines.

A traceback is rebuilt over frames of ours that bear those names; no frame of one side is ever seen by the other.
"""

import itertools
import types
from collections.abc import Callable
from typing import Any

from engine.runner.split import values
from engine.runner.split.values import Garbled

_LONGEST_CHAIN = 30  # exceptions behind one another, and frames of a traceback
_SLOTS = ("name", "path")  # of an ImportError, a NameError and an AttributeError: no arguments, and not in their dict

Convert = Callable[[Any], Any]


def put(error: BaseException, convert: Convert) -> list[Any] | None:
    """By value, where its class has a name on the other side."""
    name = values.name_of_type(type(error))
    if name is None:
        return None
    made = error.__reduce__()
    arguments = made[1] if isinstance(made, tuple) and made[0] is type(error) else error.args
    if isinstance(error, BaseExceptionGroup):
        arguments = arguments_of(error)
    return ["exception", *name, convert(arguments), put_rest(error, convert, own=True)]


def arguments_of(error: BaseException) -> tuple[Any, ...]:
    """A group's list of exceptions as a tuple: it must be whole when the group is made."""
    return (error.message, error.exceptions) if isinstance(error, BaseExceptionGroup) else tuple(error.args)


def put_rest(error: BaseException, convert: Convert, own: bool) -> list[Any]:
    """Cause, context, notes; ``own``: also the attributes, which a mirror asks for instead."""
    cause, context = error.__cause__, error.__context__
    behind = itertools.islice(_chain(error), _LONGEST_CHAIN + 1)
    if sum(1 for _ in behind) > _LONGEST_CHAIN:  # endless, perhaps
        cause = context = None
    attributes = dict(vars(error)) if own else {}
    if own and isinstance(error, ImportError | NameError | AttributeError):
        attributes |= {slot: getattr(error, slot) for slot in _SLOTS if getattr(error, slot, None) is not None}
    attributes = {k: v for k, v in attributes.items() if type(k) is str and not k.startswith(("__", "_bassline_"))}
    return [
        convert(cause),
        convert(None if context is cause else context),
        convert(context is cause and cause is not None),
        convert(error.__suppress_context__ is True),
        convert(notes_of(error)),
        convert(tuple(attributes.items())),
    ]


def _chain(error: BaseException) -> Any:
    """The exceptions behind this one; endless where they go in a circle."""
    waiting = [error]
    while waiting:
        at = waiting.pop()
        waiting += [part for part in (at.__cause__, at.__context__) if part is not None]
        yield at


def notes_of(error: BaseException) -> tuple[str, ...]:
    notes = getattr(error, "__notes__", ())
    return tuple(str(note) for note in notes if isinstance(note, str)) if isinstance(notes, list) else ()


def get(parts: list[Any], convert: Convert) -> BaseException:
    """The exception that ``put`` took apart. Raises Garbled."""
    module, name, arguments, rest = parts
    cls = values.type_named(module, name)
    given = convert(arguments)
    if not issubclass(cls, BaseException) or type(given) is not tuple:
        raise Garbled("an exception that is none")
    try:
        error = cls(*given)
    except TypeError:  # it was made in another way over there, with keywords perhaps
        error = cls.__new__(cls, *given)
        error.args = given
    get_rest(error, rest, convert)
    return error


def get_rest(error: BaseException, rest: Any, convert: Convert) -> None:
    cause, context, same, suppressed, notes, attributes = map(convert, rest)
    if not all(part is None or isinstance(part, BaseException) for part in (cause, context)):
        raise Garbled("a cause that is no exception")
    error.__cause__, error.__context__ = cause, cause if same is True else context
    error.__suppress_context__ = suppressed is True
    set_notes(error, notes)
    for name, value in attributes:
        if type(name) is not str or name.startswith(("__", "_bassline_")):
            raise Garbled("an attribute that cannot be")
        if name in _SLOTS and hasattr(type(error), name):
            setattr(error, name, value)
        else:
            vars(error)[name] = value


def set_notes(error: BaseException, notes: Any) -> None:
    if notes:
        error.__notes__ = [note for note in notes if type(note) is str]


def put_traceback(trace: types.TracebackType) -> list[Any]:
    """File, function and line of each of its frames, outermost first."""
    frames: list[list[Any]] = []
    at: types.TracebackType | None = trace
    while at is not None and len(frames) < _LONGEST_CHAIN:
        code = at.tb_frame.f_code
        frames.append([code.co_filename, code.co_name, at.tb_lineno])
        at = at.tb_next
    return ["traceback", *frames]


def get_traceback(frames: list[Any]) -> types.TracebackType:
    """A traceback that reads the same. Raises Garbled."""
    trace: types.TracebackType | None = None
    for frame in reversed(frames[:_LONGEST_CHAIN]):
        match frame:
            case [str(file), str(name), int(line)] if 0 < line < 1 << 30:
                code = _fail.__code__.replace(co_filename=file, co_name=name, co_firstlineno=line - 1)
            case _:
                raise Garbled("a traceback that is none")
        try:
            types.FunctionType(code, {})()
        except RuntimeError as error:
            inner: Any = error.__traceback__ and error.__traceback__.tb_next
            trace = types.TracebackType(trace, inner.tb_frame, inner.tb_lasti, line)
    if trace is None:
        raise Garbled("a traceback without a frame")
    return trace


def _fail() -> None:
    raise RuntimeError  # one line below the first
