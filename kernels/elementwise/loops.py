"""The loops of ``rms_norm`` and ``silu``, written for LLVM. A row's bits depend on that row alone."""

from llvmlite import ir

from kernels.llvm import FLOAT, LONG, POINTER, SHARED, FunctionBody, long
from kernels.vector import FLOATS, WIDTH, constant, exp, lane_sum, load_some, multiply_add, store_some

_NORM = [POINTER, POINTER, POINTER, LONG, LONG, FLOAT]
_SILU = [POINTER, POINTER, LONG, LONG, LONG]


def elementwise_module() -> ir.Module:
    """With ``rms_norm(x, weight, out, rows, width, eps, pieces)`` and ``silu(x, out, rows, width, apart, pieces)``;
    ``apart``: floats from one row of ``x`` to the next."""
    module = ir.Module("elementwise")
    write_rms_norm(module)
    write_silu(module)
    for name, kinds in (("rms_norm", _NORM), ("silu", _SILU)):
        body = FunctionBody(module, name, [*kinds, LONG])
        body.share_out(f"some_{name}", body.parameters[:-1], body.parameters[-1])
        body.at.ret_void()
    return module


def write_rms_norm(module: ir.Module) -> None:
    body = FunctionBody(module, "some_rms_norm", SHARED)
    at = body.at
    x, weight, out, rows, width, eps = body.received(_NORM)
    first, last = body.share(rows)
    rest = at.srem(width, long(WIDTH))
    even = at.sub(width, rest)
    with body.loop(first, last) as row:
        start = at.mul(row, width)
        line, result = body.address(x, start, FLOAT), body.address(out, start, FLOAT)
        squares = body.variable(constant(0.0))

        def add(value: ir.Value, squares: ir.Value = squares) -> None:
            body.store(multiply_add(body, value, value, body.load(squares, FLOATS)), squares)

        with body.loop(long(0), even, WIDTH) as i:
            add(body.load(body.address(line, i, FLOAT), FLOATS))
        with body.loop(even, width, WIDTH) as i:  # at most once
            add(load_some(body, body.address(line, i, FLOAT), rest))
        mean = at.fdiv(lane_sum(body, body.load(squares, FLOATS)), at.sitofp(width, FLOAT))
        root = body.call("llvm.sqrt.f32", FLOAT, at.fadd(mean, eps))
        factor = body.splat(at.fdiv(ir.Constant(FLOAT, 1.0), root), WIDTH)
        with body.loop(long(0), even, WIDTH) as i:
            value = at.fmul(body.load(body.address(line, i, FLOAT), FLOATS), factor)
            value = at.fmul(value, body.load(body.address(weight, i, FLOAT), FLOATS))
            body.store(value, body.address(result, i, FLOAT))
        with body.loop(even, width, WIDTH) as i:
            value = at.fmul(load_some(body, body.address(line, i, FLOAT), rest), factor)
            value = at.fmul(value, load_some(body, body.address(weight, i, FLOAT), rest))
            store_some(body, value, body.address(result, i, FLOAT), rest)
    at.ret_void()


def write_silu(module: ir.Module) -> None:
    """The rows of ``out`` lie one behind the other."""
    body = FunctionBody(module, "some_silu", SHARED)
    at = body.at
    x, out, rows, width, apart = body.received(_SILU)
    first, last = body.share(rows)
    rest = at.srem(width, long(WIDTH))
    even = at.sub(width, rest)

    def applied(value: ir.Value) -> ir.Value:
        return at.fdiv(value, at.fadd(exp(body, at.fneg(value)), constant(1.0)))

    with body.loop(first, last) as row:
        line, result = body.address(x, at.mul(row, apart), FLOAT), body.address(out, at.mul(row, width), FLOAT)
        with body.loop(long(0), even, WIDTH) as i:
            value = body.load(body.address(line, i, FLOAT), FLOATS)
            body.store(applied(value), body.address(result, i, FLOAT))
        with body.loop(even, width, WIDTH) as i:  # at most once
            value = load_some(body, body.address(line, i, FLOAT), rest)
            store_some(body, applied(value), body.address(result, i, FLOAT), rest)
    at.ret_void()
