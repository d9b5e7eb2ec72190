"""The loops of the int8 product, written for LLVM.

``linear`` quantises the rows and shares out runs of panels; ``tile`` multiplies one panel with as many
rows as the registers hold sums for, so that a panel is read from memory once, whatever the number of rows.
"""

from dataclasses import dataclass

from llvmlite import ir

from kernels.int8_linear.quantize import INPUT_LEVELS, TINY
from kernels.llvm import BYTE, FLOAT, INT, LONG, NOTHING, POINTER, SHARED, FunctionBody, long
from kernels.vector import FLOATS, WIDTH, constant, multiply_add

OFFSET = 64  # weights become 1 .. 127: unsigned, and pair sums of AVX2 still fit 16 bits
STRIDE = WIDTH  # inputs are padded to a multiple of it
_MANY, _AHEAD = 5, 8192  # so many rows hide the way from memory of what lies so many bytes ahead
_ALONE = 16  # rows that are quantised before another thread would have begun
_ZERO = 128.0  # FBGEMM adds this to an input before it rounds, and rounding in one's place must come out the same
_FIELDS = [POINTER] * 7 + [LONG] * 3


@dataclass(frozen=True)
class DotVariant:
    """One kind of dot-product instruction; the registers hold the sums of ``rows`` rows at once."""

    name: str
    needs: tuple[frozenset[str], ...]  # any of these sets of features will do
    lanes: int
    rows: int
    fused: bool  # one instruction for what AVX2 needs three for

    def dot(self, body: FunctionBody, total: ir.Value, weights: ir.Value, inputs: ir.Value) -> ir.Value:
        """To every int32 lane of ``total``, the products of four unsigned bytes and four signed ones."""
        if self.fused:
            return body.call(f"llvm.x86.avx512.vpdpbusd.{32 * self.lanes}", total.type, total, weights, inputs)
        fours, pairs = ir.VectorType(BYTE, 4 * self.lanes), ir.VectorType(ir.IntType(16), 2 * self.lanes)
        weights, inputs = (body.at.bitcast(value, fours) for value in (weights, inputs))
        sums = body.call("llvm.x86.avx2.pmadd.ub.sw", pairs, weights, inputs)
        ones = ir.Constant(pairs, [1] * 2 * self.lanes)
        return body.at.add(total, body.call("llvm.x86.avx2.pmadd.wd", total.type, sums, ones))


WAYS = (
    DotVariant("AVX-512 VNNI", (frozenset({"avx512f", "avx512bw", "avx512vnni"}),), 16, 16, True),
    DotVariant("AVX VNNI", (frozenset({"avxvnni", "fma"}), frozenset({"avx512vl", "avx512vnni", "fma"})), 8, 8, True),
    DotVariant("AVX2", (frozenset({"avx2", "fma"}),), 8, 8, False),
)


def linear_module(way: DotVariant) -> ir.Module:
    """With one function to call: ``linear(x, panels, factors, bias, out, room, rows, stride, panels, pieces)``."""
    module = ir.Module("int8_linear")
    write_quantize(module)
    for rows in range(1, way.rows + 1):
        write_tile(module, way, rows)
    write_some_panels(module, way)
    write_some_rows(module, way)
    write_linear(module, way)
    return module


def write_quantize(module: ir.Module) -> None:
    """One row: its largest magnitude, its integers, and their sum.

    ``apart``: bytes from one group of four to the next; between them lie those of the other rows of the block.
    """
    body = FunctionBody(module, "quantize", [POINTER, POINTER, POINTER, POINTER, LONG, LONG])
    x, q, largest, total, length, apart = body.parameters
    at, lanes, ints = body.at, WIDTH, ir.VectorType(INT, WIDTH)
    most = body.variable(constant(TINY))
    with body.loop(long(0), length, lanes) as i:
        value = body.call("llvm.fabs.v16f32", FLOATS, body.load(body.address(x, i, FLOAT), FLOATS))
        body.store(body.call("llvm.maximum.v16f32", FLOATS, body.load(most, FLOATS), value), most)
    magnitude = body.call("llvm.vector.reduce.fmaximum.v16f32", FLOAT, body.load(most, FLOATS))
    body.store(magnitude, largest)
    divisor = body.splat(magnitude, lanes)
    sums = body.variable(ir.Constant(ints, [0] * lanes))
    with body.loop(long(0), length, lanes) as i:
        value = at.fdiv(body.load(body.address(x, i, FLOAT), FLOATS), divisor)
        value = multiply_add(body, value, constant(INPUT_LEVELS), constant(_ZERO))
        level = at.sub(
            at.fptosi(body.call("llvm.rint.v16f32", FLOATS, value), ints), ir.Constant(ints, [int(_ZERO)] * lanes)
        )
        body.store(at.add(body.load(sums, ints), level), sums)
        fours = at.bitcast(at.trunc(level, ir.VectorType(BYTE, lanes)), ir.VectorType(INT, lanes // 4))
        for part in range(lanes // 4):
            group = at.add(at.sdiv(i, long(4)), long(part))
            body.store(at.extract_element(fours, ir.Constant(INT, part)), body.address(q, at.mul(group, apart)))
    body.store(body.call("llvm.vector.reduce.add.v16i32", INT, body.load(sums, ints)), total)
    at.ret_void()


def write_tile(module: ir.Module, way: DotVariant, rows: int) -> None:
    """One panel times a block of ``rows`` rows, whose integers lie side by side, four by four."""
    body = FunctionBody(module, f"tile{rows}", [POINTER] * 7 + [LONG] * 2)
    body.function.linkage = "internal"
    panel, q, largest, totals, factors, bias, out, stride, width = body.parameters
    at, lanes = body.at, way.lanes
    ints, floats = ir.VectorType(INT, lanes), ir.VectorType(FLOAT, lanes)
    together = max(1, 4 // rows)  # few rows: several sums for each, so that none waits for the one before
    sums = [[body.variable(ir.Constant(ints, [0] * lanes)) for _ in range(together)] for _ in range(rows)]
    with body.loop(long(0), stride, 4 * together) as start:
        for part in range(together):
            k = at.add(start, long(4 * part))
            weights = body.load(body.address(panel, at.mul(k, long(lanes))), ints)
            inputs = body.address(q, at.mul(k, long(rows)))
            if rows >= _MANY:
                ahead = body.address(panel, at.add(at.mul(k, long(lanes)), long(_AHEAD)))
                body.call("llvm.prefetch.p0", NOTHING, ahead, *(ir.Constant(INT, value) for value in (0, 3, 1)))
            for row in range(rows):
                four = body.splat(body.load(body.address(inputs, row, INT), INT), lanes)
                place = sums[row][part]
                body.store(way.dot(body, body.load(place, ints), weights, four), place)
    for row in range(rows):
        whole = body.load(sums[row][0], ints)
        for part in range(1, together):
            whole = at.add(whole, body.load(sums[row][part], ints))
        surplus = at.mul(body.load(body.address(totals, row, INT), INT), ir.Constant(INT, OFFSET))
        value = at.sitofp(at.sub(whole, body.splat(surplus, lanes)), floats)
        value = at.fmul(value, body.load(factors, floats))
        value = at.fmul(value, body.splat(body.load(body.address(largest, row, FLOAT), FLOAT), lanes))
        value = at.fadd(value, body.load(bias, floats))
        body.store(value, body.address(out, at.mul(width, long(row)), FLOAT))
    at.ret_void()


def write_some_panels(module: ir.Module, way: DotVariant) -> None:
    """One piece: a run of panels, each with all rows, block by block."""
    body = FunctionBody(module, "some_panels", SHARED)
    at = body.at
    panels, q, largest, totals, factors, bias, out, rows, stride, count = body.received(_FIELDS)
    width = at.mul(count, long(way.lanes))
    first, last = body.share(count)
    with body.loop(first, last) as panel, body.loop(long(0), rows, way.rows) as row:
        column = at.mul(panel, long(way.lanes))
        arguments = [
            body.address(panels, at.mul(column, stride)),
            body.address(q, at.mul(row, stride)),
            body.address(largest, row, FLOAT),
            body.address(totals, row, INT),
            body.address(factors, column, FLOAT),
            body.address(bias, column, FLOAT),
            body.address(out, at.add(at.mul(row, width), column), FLOAT),
            stride,
            width,
        ]
        full, done = (body.function.append_basic_block(name) for name in ("full", "done"))
        switch = at.switch(at.sub(rows, row), full)
        for some in range(1, way.rows):
            block = body.function.append_basic_block(f"rows{some}")
            switch.add_case(long(some), block)
            at.position_at_end(block)
            body.call(f"tile{some}", NOTHING, *arguments)
            at.branch(done)
        at.position_at_end(full)
        body.call(f"tile{way.rows}", NOTHING, *arguments)
        at.branch(done)
        at.position_at_end(done)
    at.ret_void()


def write_some_rows(module: ir.Module, way: DotVariant) -> None:
    """One piece: some rows are quantised, each into its place in its block."""
    body = FunctionBody(module, "some_rows", SHARED)
    at = body.at
    x, q, largest, totals, rows, stride = body.received([POINTER] * 4 + [LONG] * 2)
    first, last = body.share(rows)
    with body.loop(first, last) as row:
        place = at.srem(row, long(way.rows))
        start = at.sub(row, place)
        left = at.sub(rows, start)
        block = at.select(at.icmp_signed("<", left, long(way.rows)), left, long(way.rows))
        body.call(
            "quantize",
            NOTHING,
            body.address(x, at.mul(row, stride), FLOAT),
            body.address(body.address(q, at.mul(start, stride)), place, INT),
            body.address(largest, row, FLOAT),
            body.address(totals, row, INT),
            stride,
            at.mul(block, long(4)),
        )
    at.ret_void()


def write_linear(module: ir.Module, way: DotVariant) -> None:
    """The whole product. ``room`` takes the magnitudes, the sums and the integers of the rows."""
    body = FunctionBody(module, "linear", [POINTER] * 6 + [LONG] * 4)
    x, panels, factors, bias, out, room, rows, stride, count, pieces = body.parameters
    at, largest = body.at, room
    totals = body.address(largest, rows, FLOAT)
    q = body.address(totals, rows, INT)
    few = at.icmp_signed("<=", rows, long(_ALONE))
    body.share_out("some_rows", [x, q, largest, totals, rows, stride], at.select(few, long(1), pieces))
    body.share_out("some_panels", [panels, q, largest, totals, factors, bias, out, rows, stride, count], pieces)
    at.ret_void()
