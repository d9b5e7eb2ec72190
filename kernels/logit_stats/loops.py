"""The loop of the logit statistics, written for LLVM. A row's bits depend on that row alone."""

from llvmlite import ir

from kernels.llvm import FLOAT, INT, LONG, POINTER, SHARED, FunctionBody, long
from kernels.logit_stats.torch import CHUNK
from kernels.vector import FLOATS, WIDTH, constant, exp, lane_sum

_FIELDS = [POINTER] * 4 + [LONG] * 3
_NOTHING = constant(float("-inf"))


def logit_stats_module() -> ir.Module:
    """With ``logit_stats(logits, factors, maxima, sums, rows, width, apart, pieces)``; ``apart``: floats from one row
    of the logits to the next; ``sums`` ``[3, rows]``: the largest, and the sums of exp of what is less than it, as it
    is and multiplied."""
    module = ir.Module("logit_stats")
    write_some_rows(module)
    body = FunctionBody(module, "logit_stats", [*_FIELDS, LONG])
    body.share_out("some_rows", body.parameters[:-1], body.parameters[-1])
    body.at.ret_void()
    return module


def write_some_rows(module: ir.Module) -> None:
    body = FunctionBody(module, "some_rows", SHARED)
    at = body.at
    logits, factors, maxima, sums, rows, width, apart = body.received(_FIELDS)
    chunks, rest = at.sdiv(width, long(CHUNK)), at.srem(width, long(WIDTH))
    first, last = body.share(rows)
    with body.loop(first, last) as row:
        line = body.address(logits, at.mul(row, apart), FLOAT)
        end = body.address(line, at.sub(width, long(WIDTH)), FLOAT)
        largest = write_largest(body, line, end, width, body.address(maxima, at.mul(row, chunks), FLOAT))
        factor = body.load(body.address(factors, row, FLOAT), FLOAT)
        whole, scaled = write_sums(body, line, end, at.sub(width, rest), rest, largest, factor)
        for part, value in enumerate((largest, whole, scaled)):
            body.store(value, body.address(sums, at.add(at.mul(rows, long(part)), row), FLOAT))
    at.ret_void()


def write_largest(body: FunctionBody, line: ir.Value, end: ir.Value, width: ir.Value, maxima: ir.Value) -> ir.Value:
    """Of the whole row; that of every chunk is stored."""
    at, most = body.at, body.variable(_NOTHING)
    chunks = at.sdiv(width, long(CHUNK))
    with body.loop(long(0), chunks) as chunk:
        start = body.address(line, at.mul(chunk, long(CHUNK)), FLOAT)
        value = body.load(start, FLOATS)
        for part in range(WIDTH, CHUNK, WIDTH):
            value = _maximum(body, value, body.load(body.address(start, part, FLOAT), FLOATS))
        body.store(_highest(body, value), body.address(maxima, chunk, FLOAT))
        body.store(_maximum(body, body.load(most, FLOATS), value), most)
    with body.loop(at.mul(chunks, long(CHUNK)), at.sub(width, long(WIDTH - 1)), WIDTH) as i:
        value = body.load(body.address(line, i, FLOAT), FLOATS)
        body.store(_maximum(body, body.load(most, FLOATS), value), most)
    # The last sixteen once more, in case the row does not end where sixteen do: a maximum minds no repetition.
    return _highest(body, _maximum(body, body.load(most, FLOATS), body.load(end, FLOATS)))


def write_sums(
    body: FunctionBody,
    line: ir.Value,
    end: ir.Value,
    even: ir.Value,
    rest: ir.Value,
    largest: ir.Value,
    factor: ir.Value,
) -> tuple[ir.Value, ir.Value]:
    """Of exp of every logit less the largest, as it is and multiplied; ``even`` of them come in whole vectors."""
    at, beside, times = body.at, body.splat(largest, WIDTH), body.splat(factor, WIDTH)
    places = [body.variable(constant(0.0)) for _ in range(2)]

    def add(values: ir.Value) -> None:
        below = at.fsub(values, beside)
        for place, value in zip(places, (below, at.fmul(below, times)), strict=True):
            body.store(at.fadd(body.load(place, FLOATS), exp(body, value)), place)

    with body.loop(long(0), even, WIDTH) as i:
        add(body.load(body.address(line, i, FLOAT), FLOATS))
    # Of the last sixteen, those that were not among the whole vectors; the others count as ruled out.
    lanes = ir.Constant(ir.VectorType(INT, WIDTH), list(range(WIDTH)))
    known = body.splat(at.trunc(at.sub(long(WIDTH), rest), INT), WIDTH)
    add(at.select(at.icmp_signed(">=", lanes, known), body.load(end, FLOATS), _NOTHING))
    return lane_sum(body, body.load(places[0], FLOATS)), lane_sum(body, body.load(places[1], FLOATS))


def _maximum(body: FunctionBody, left: ir.Value, right: ir.Value) -> ir.Value:
    return body.call("llvm.maximum.v16f32", FLOATS, left, right)


def _highest(body: FunctionBody, vector: ir.Value) -> ir.Value:
    return body.call("llvm.vector.reduce.fmaximum.v16f32", FLOAT, vector)
