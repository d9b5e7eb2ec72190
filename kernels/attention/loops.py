"""The loops of packed attention on the CPU, written for LLVM.

The unit of work is one token and one key head: the query heads that share the key head go over the keys together, the
prompt's first and the row's own after them. What a token gets depends on its own row alone, to the bit: its sums run
over its keys in their order, whatever else is in the line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from kernels.llvm import FLOAT, INT, LONG, NOTHING, POINTER, SHARED, FunctionBody, long
from kernels.vector import FLOATS, WIDTH, constant, exp, lane_sum, multiply_add

_REGISTERS = 28  # vectors of a query, or of an output, that are held at once
_FIELDS = [POINTER] * 10 + [LONG] * 14 + [FLOAT] * 2


@dataclass(frozen=True)
class HeadShape:
    """What the loops are compiled for: the sizes of heads, and how many query heads share a key head."""

    key_size: int
    value_size: int
    heads: int
    softcap: bool
    sinks: bool

    @property
    def lanes(self) -> int:
        return next(lanes for lanes in (16, 8, 4) if self.key_size % lanes == self.value_size % lanes == 0)

    @property
    def chunks(self) -> list[int]:
        """How many heads go over the keys at once, chunk by chunk."""
        most = max(1, _REGISTERS * self.lanes // max(self.key_size, self.value_size))
        return [min(most, self.heads - first) for first in range(0, self.heads, most)]


def fits(key_size: int, value_size: int) -> bool:
    return key_size % 4 == value_size % 4 == 0


def attention_module(shape: HeadShape) -> ir.Module:
    """With one function to call, ``attend``; its arguments are the fields below, and the number of pieces."""
    module = ir.Module("attention")
    for heads in sorted(set(shape.chunks)):
        write_heads(module, shape, heads)
    write_some_work(module, shape)
    body = FunctionBody(module, "attend", [*_FIELDS, LONG])
    body.share_out("some_work", body.parameters[:-1], body.parameters[-1])
    body.at.ret_void()
    return module


def write_some_work(module: ir.Module, shape: HeadShape) -> None:
    """One piece: every so-many-eth token and key head, for later tokens of a prompt see more keys."""
    body = FunctionBody(module, "some_work", SHARED)
    at = body.at
    (query, prefix_keys, prefix_values, keys, values, rows, slots, sinks, out, room, *sizes) = body.received(_FIELDS)
    tokens, groups, prefix, window, query_token, query_head, *strides, apart, scaling, cap = sizes
    prefix_key_group, prefix_value_group, key_row, key_group, value_row, value_group, room_size = strides
    _, piece, pieces = body.parameters
    scores = body.address(room, at.mul(piece, room_size), FLOAT)
    with body.loop(piece, at.mul(tokens, groups), pieces) as work:
        group, token = at.sdiv(work, tokens), at.srem(work, tokens)
        row, slot = (body.load(body.address(each, token, LONG), LONG) for each in (rows, slots))
        seen = at.sub(at.add(at.add(prefix, slot), long(1)), window)  # the first position in the window
        seen = _most(body, at.select(at.icmp_signed(">", window, long(0)), seen, long(0)), long(0))
        first = at.select(at.icmp_signed("<", seen, prefix), seen, prefix)
        spans = [first, prefix, _most(body, at.sub(seen, prefix), long(0)), at.add(slot, long(1))]
        bases = [
            body.address(prefix_keys, at.mul(group, prefix_key_group), FLOAT),
            body.address(keys, at.add(at.mul(row, key_row), at.mul(group, key_group)), FLOAT),
            body.address(prefix_values, at.mul(group, prefix_value_group), FLOAT),
            body.address(values, at.add(at.mul(row, value_row), at.mul(group, value_group)), FLOAT),
        ]
        head = at.mul(group, long(shape.heads))
        for heads in shape.chunks:
            queries = body.address(query, at.add(at.mul(token, query_token), at.mul(head, query_head)), FLOAT)
            place = at.add(at.mul(token, at.mul(groups, long(shape.heads))), head)
            answer = body.address(out, at.mul(place, long(shape.value_size)), FLOAT)
            sink = body.address(sinks, head, FLOAT)
            rest = [scores, apart, query_head, scaling, cap, sink]
            body.call(f"heads{heads}", NOTHING, queries, answer, *bases, *spans, *rest)
            head = at.add(head, long(heads))
    at.ret_void()


def write_heads(module: ir.Module, shape: HeadShape, heads: int) -> None:
    """Some heads of one token over the keys of the prompt and of the row."""
    kinds = [POINTER] * 6 + [LONG] * 4 + [POINTER, LONG, LONG, FLOAT, FLOAT, POINTER]
    body = FunctionBody(module, f"heads{heads}", kinds)
    body.function.linkage = "internal"
    query, out, *bases = body.parameters[:6]
    first, prefix, start, stop, scores, apart, query_head, scaling, cap, sinks = body.parameters[6:]
    spans = [(first, prefix), (start, stop)]
    at = body.at
    lines = [body.address(scores, at.mul(apart, long(head)), FLOAT) for head in range(heads)]
    count = at.add(at.sub(prefix, first), at.sub(stop, start))
    queries = [body.address(query, at.mul(query_head, long(head)), FLOAT) for head in range(heads)]
    _scores(body, shape, queries, bases[:2], spans, lines, scaling)
    own = (
        [body.load(body.address(sinks, head, FLOAT), FLOAT) for head in range(heads)] if shape.sinks else [None] * heads
    )
    shares = [_softmax(body, shape, line, count, cap, sink) for line, sink in zip(lines, own, strict=True)]
    _mix(body, shape, bases[2:], spans, lines, shares, out)
    at.ret_void()


def _scores(
    body: FunctionBody,
    shape: HeadShape,
    queries: Sequence[ir.Value],
    bases: Sequence[ir.Value],
    spans: Sequence[tuple[ir.Value, ir.Value]],
    lines: Sequence[ir.Value],
    scaling: ir.Value,
) -> None:
    """Query times key, for every head and every key that is seen."""
    at, floats = body.at, ir.VectorType(FLOAT, shape.lanes)
    parts = range(0, shape.key_size, shape.lanes)
    held = [[body.load(body.address(query, part, FLOAT), floats) for part in parts] for query in queries]
    position = body.variable(long(0))
    for base, (first, stop) in zip(bases, spans, strict=True):
        with body.loop(first, stop) as index:
            key = body.address(base, at.mul(index, long(shape.key_size)), FLOAT)
            loaded = [body.load(body.address(key, part, FLOAT), floats) for part in parts]
            here = body.load(position, LONG)
            for own, line in zip(held, lines, strict=True):
                total = at.fmul(own[0], loaded[0])
                for left, right in zip(own[1:], loaded[1:], strict=True):
                    total = multiply_add(body, left, right, total)
                body.store(at.fmul(lane_sum(body, total), scaling), body.address(line, here, FLOAT))
            body.store(at.add(here, long(1)), position)


def _softmax(
    body: FunctionBody, shape: HeadShape, line: ir.Value, count: ir.Value, cap: ir.Value, sink: ir.Value | None
) -> ir.Value:
    """Scores to weights that are not yet divided by their sum; gives what to multiply them with."""
    at = body.at
    if shape.softcap:
        with body.loop(long(0), count, WIDTH) as i:
            place = body.address(line, i, FLOAT)
            body.store(_capped(body, body.load(place, FLOATS), body.splat(cap, WIDTH)), place)
    body.store(constant(float("-inf")), body.address(line, count, FLOAT))
    most = body.variable(constant(float("-inf")) if sink is None else body.splat(sink, WIDTH))
    with body.loop(long(0), count, WIDTH) as i:
        value = body.load(body.address(line, i, FLOAT), FLOATS)
        body.store(body.call("llvm.maximum.v16f32", FLOATS, body.load(most, FLOATS), value), most)
    highest = body.call("llvm.vector.reduce.fmaximum.v16f32", FLOAT, body.load(most, FLOATS))
    highest = body.splat(highest, WIDTH)
    total = body.variable(constant(0.0))
    with body.loop(long(0), count, WIDTH) as i:
        place = body.address(line, i, FLOAT)
        weight = exp(body, at.fsub(body.load(place, FLOATS), highest))
        body.store(weight, place)
        body.store(at.fadd(body.load(total, FLOATS), weight), total)
    whole = lane_sum(body, body.load(total, FLOATS))
    if sink is not None:
        own = exp(body, at.fsub(body.splat(sink, WIDTH), highest))
        whole = at.fadd(whole, at.extract_element(own, ir.Constant(INT, 0)))
    return at.fdiv(ir.Constant(FLOAT, 1.0), whole)


def _mix(
    body: FunctionBody,
    shape: HeadShape,
    bases: Sequence[ir.Value],
    spans: Sequence[tuple[ir.Value, ir.Value]],
    lines: Sequence[ir.Value],
    shares: Sequence[ir.Value],
    out: ir.Value,
) -> None:
    """The weighted sum of the values, head after head ``[heads, value_size]``."""
    at, floats = body.at, ir.VectorType(FLOAT, shape.lanes)
    parts = range(0, shape.value_size, shape.lanes)
    nothing = ir.Constant(floats, [0.0] * shape.lanes)
    totals = [[body.variable(nothing) for _ in parts] for _ in lines]
    position = body.variable(long(0))
    for base, (first, stop) in zip(bases, spans, strict=True):
        with body.loop(first, stop) as index:
            value = body.address(base, at.mul(index, long(shape.value_size)), FLOAT)
            loaded = [body.load(body.address(value, part, FLOAT), floats) for part in parts]
            here = body.load(position, LONG)
            for own, line in zip(totals, lines, strict=True):
                weight = body.splat(body.load(body.address(line, here, FLOAT), FLOAT), shape.lanes)
                for place, part in zip(own, loaded, strict=True):
                    body.store(multiply_add(body, weight, part, body.load(place, floats)), place)
            body.store(at.add(here, long(1)), position)
    for head, (own, share) in enumerate(zip(totals, shares, strict=True)):
        for place, part in zip(own, parts, strict=True):
            value = at.fmul(body.load(place, floats), body.splat(share, shape.lanes))
            body.store(value, body.address(out, head * shape.value_size + part, FLOAT))


def _capped(body: FunctionBody, score: ir.Value, cap: ir.Value) -> ir.Value:
    """``cap * tanh(score / cap)``."""
    at = body.at
    doubled = at.fdiv(at.fadd(score, score), cap)
    below = at.fdiv(constant(2.0), at.fadd(exp(body, doubled), constant(1.0)))
    return at.fmul(cap, at.fsub(constant(1.0), below))


def _most(body: FunctionBody, left: ir.Value, right: ir.Value) -> ir.Value:
    return body.at.select(body.at.icmp_signed(">", left, right), left, right)
