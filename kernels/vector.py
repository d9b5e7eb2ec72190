"""Arithmetic on sixteen floats at a time, written for LLVM; a processor with shorter registers takes several."""

from llvmlite import ir

from kernels.llvm import FLOAT, INT, FunctionBody, long

WIDTH = 16
FLOATS, _INTS = ir.VectorType(FLOAT, WIDTH), ir.VectorType(INT, WIDTH)
_LOWEST, _HIGHEST = -87.0, 88.0  # between them exp is a normal float32
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)


def load_some(body: FunctionBody, place: ir.Value, count: ir.Value) -> ir.Value:
    """The ``count`` floats at ``place``, fewer than sixteen, and zeros after them. Nothing beyond them is read."""
    lanes = body.variable(constant(0.0))
    with body.loop(long(0), count) as i:
        one = body.load(body.address(place, i, FLOAT), FLOAT)
        body.store(body.at.insert_element(body.load(lanes, FLOATS), one, i), lanes)
    return body.load(lanes, FLOATS)


def store_some(body: FunctionBody, value: ir.Value, place: ir.Value, count: ir.Value) -> None:
    """The first ``count`` lanes of ``value``, fewer than sixteen. Nothing beyond them is written."""
    with body.loop(long(0), count) as i:
        body.store(body.at.extract_element(value, i), body.address(place, i, FLOAT))


def constant(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [value] * WIDTH)


def multiply_add(body: FunctionBody, left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
    return body.call(f"llvm.fma.v{left.type.count}f32", left.type, left, right, total)


def lane_sum(body: FunctionBody, vector: ir.Value) -> ir.Value:
    """Of the lanes, pair by pair: an order of its own, and always the same."""
    zero = ir.Constant(FLOAT, 0.0)
    return body.call(f"llvm.vector.reduce.fadd.v{vector.type.count}f32", FLOAT, zero, vector, fastmath=("reassoc",))


def exp(body: FunctionBody, x: ir.Value) -> ir.Value:
    """To 2 units in the last place: 2 ** n times a polynomial (Cephes' expf) on what is left. 0 for -inf."""
    at = body.at
    x = body.call("llvm.maxnum.v16f32", FLOATS, x, constant(_LOWEST - 1))
    x = body.call("llvm.minnum.v16f32", FLOATS, x, constant(_HIGHEST))
    power = body.call("llvm.rint.v16f32", FLOATS, at.fmul(x, constant(_LOG2_E)))
    left = multiply_add(body, power, constant(-_LN2_HIGH), x)
    left = multiply_add(body, power, constant(-_LN2_LOW), left)
    value = constant(_EXP[0])
    for factor in _EXP[1:]:
        value = multiply_add(body, value, left, constant(factor))
    value = multiply_add(body, value, at.fmul(left, left), at.fadd(left, constant(1.0)))
    exponent = at.add(at.fptosi(power, _INTS), ir.Constant(_INTS, [127] * WIDTH))
    exponent = at.shl(exponent, ir.Constant(_INTS, [23] * WIDTH))
    value = at.fmul(value, at.bitcast(exponent, FLOATS))
    return at.select(at.fcmp_ordered(">=", x, constant(_LOWEST)), value, constant(0.0))
