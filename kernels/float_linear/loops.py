"""The loops of the float32 product, written for LLVM.

Weights stay where they are, row by row of outputs. A tile is a few outputs times a few rows: each pair has one vector
of sums, sixteen inputs side by side, which are added up at the end. So a pair's sum has one order, in whatever tile.
"""

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from kernels.llvm import FLOAT, LONG, NOTHING, POINTER, SHARED, FunctionBody, long
from kernels.vector import FLOATS, WIDTH, constant, lane_sum, load_some, multiply_add

_FIELDS = [POINTER] * 4 + [LONG] * 5
_CHUNK = 64  # outputs whose weights stay in the processor's cache while all rows go past


@dataclass(frozen=True)
class Tile:
    """As many sums as there are registers for."""

    outputs: int
    rows: int


def linear_module(tile: Tile) -> ir.Module:
    """With ``linear(x, weight, bias, out, rows, inputs, outputs, apart, apart_of_weight, pieces)``; ``apart``: floats
    from one row to the next. ``bias`` has a number for every output."""
    module = ir.Module("float_linear")
    for outputs in range(1, tile.outputs + 1):
        for rows in range(1, tile.rows + 1):
            write_tile(module, outputs, rows)
    write_some_outputs(module, tile)
    body = FunctionBody(module, "linear", [*_FIELDS, LONG])
    body.share_out("some_outputs", body.parameters[:-1], body.parameters[-1])
    body.at.ret_void()
    return module


def write_tile(module: ir.Module, outputs: int, rows: int) -> None:
    body = FunctionBody(module, f"tile{outputs}x{rows}", [POINTER] * 4 + [LONG] * 4)
    body.function.linkage = "internal"
    x, weight, bias, out, inputs, apart, apart_of_weight, width = body.parameters
    at = body.at
    rest = at.srem(inputs, long(WIDTH))
    even = at.sub(inputs, rest)
    sums = [[body.variable(constant(0.0)) for _ in range(outputs)] for _ in range(rows)]

    def add(i: ir.Value, load: Callable[[ir.Value], ir.Value]) -> None:
        def line(base: ir.Value, step: ir.Value, index: int) -> ir.Value:
            return load(body.address(base, at.add(at.mul(step, long(index)), i), FLOAT))

        weights = [line(weight, apart_of_weight, output) for output in range(outputs)]
        for row in range(rows):
            value = line(x, apart, row)
            for place, own in zip(sums[row], weights, strict=True):
                body.store(multiply_add(body, own, value, body.load(place, FLOATS)), place)

    with body.loop(long(0), even, WIDTH) as i:
        add(i, lambda place: body.load(place, FLOATS))
    with body.loop(even, inputs, WIDTH) as i:  # at most once
        add(i, lambda place: load_some(body, place, rest))
    for row in range(rows):
        for output in range(outputs):
            whole = lane_sum(body, body.load(sums[row][output], FLOATS))
            whole = at.fadd(whole, body.load(body.address(bias, output, FLOAT), FLOAT))
            body.store(whole, body.address(out, at.add(at.mul(width, long(row)), long(output)), FLOAT))
    at.ret_void()


def write_some_outputs(module: ir.Module, tile: Tile) -> None:
    """One piece: a run of outputs with all rows, a chunk at a time."""
    body = FunctionBody(module, "some_outputs", SHARED)
    at = body.at
    x, weight, bias, out, rows, inputs, outputs, apart, apart_of_weight = body.received(_FIELDS)
    first, last = body.share(outputs)
    with body.loop(first, last, _CHUNK) as chunk:
        end = at.add(chunk, long(_CHUNK))
        end = at.select(at.icmp_signed("<", end, last), end, last)
        with body.loop(long(0), rows, tile.rows) as row, body.loop(chunk, end, tile.outputs) as output:
            arguments = [
                body.address(x, at.mul(row, apart), FLOAT),
                body.address(weight, at.mul(output, apart_of_weight), FLOAT),
                body.address(bias, output, FLOAT),
                body.address(out, at.add(at.mul(row, outputs), output), FLOAT),
                inputs,
                apart,
                apart_of_weight,
                outputs,
            ]
            here = [_most(body, at.sub(end, output), tile.outputs), _most(body, at.sub(rows, row), tile.rows)]
            call_tile(body, tile, here, arguments)
    at.ret_void()


def call_tile(body: FunctionBody, tile: Tile, here: list[ir.Value], arguments: list[ir.Value]) -> None:
    """The tile of so many outputs and rows."""
    at = body.at
    done = body.function.append_basic_block("done")
    switch = at.switch(at.add(at.mul(here[0], long(tile.rows + 1)), here[1]), done)
    for outputs in range(1, tile.outputs + 1):
        for rows in range(1, tile.rows + 1):
            block = body.function.append_basic_block(f"tile{outputs}x{rows}")
            switch.add_case(long(outputs * (tile.rows + 1) + rows), block)
            at.position_at_end(block)
            body.call(f"tile{outputs}x{rows}", NOTHING, *arguments)
            at.branch(done)
    at.position_at_end(done)


def _most(body: FunctionBody, value: ir.Value, most: int) -> ir.Value:
    return body.at.select(body.at.icmp_signed("<", value, long(most)), value, long(most))
