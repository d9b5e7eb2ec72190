"""Loops that torch has no fast operation for on a CPU, compiled for this very processor while the program starts.

No compiler need be installed: llvmlite brings LLVM. A loop is written as one would in C, with variables on the stack;
LLVM's passes put them into registers. ``kernels.thread_pool`` has several threads run it.
"""

import ctypes
import functools
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir

BYTE, INT, LONG, FLOAT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()
POINTER, NOTHING = ir.PointerType(), ir.VoidType()
SHARED = [POINTER, LONG, LONG]  # parameters of a function that does one piece: fields, which piece, of how many
SHARE_OUT = "bassline_share_out"  # (function, fields, pieces): see ``kernels.thread_pool``


@functools.cache
def why_not() -> str:
    """Why nothing is compiled here; empty where it is. Tried once, with a function too small to matter."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return "the loops are written for x86 processors"
    try:
        return "" if _one() == 1 else "what is compiled does not run"
    except (RuntimeError, OSError) as error:  # a system that lets no program write code for itself
        return f"nothing can be compiled: {error}"


@functools.cache
def features() -> frozenset[str]:
    """What this processor knows, in LLVM's words, such as ``avx2`` and ``avx512vnni``."""
    return frozenset(name for name, there in binding.get_host_cpu_features().items() if there)


class FunctionBody:
    """The body of a function in the making. ``at`` is llvmlite's builder, which stands where the next line goes."""

    def __init__(self, module: ir.Module, name: str, parameters: Sequence[ir.Type]):
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(NOTHING, parameters), name)
        self.parameters = self.function.args
        self.at = ir.IRBuilder(self.function.append_basic_block("entry"))

    def variable(self, start: ir.Value) -> ir.Value:
        """A place on the stack that holds ``start``."""
        with self.at.goto_entry_block():  # where LLVM looks for what may live in a register
            place = self.at.alloca(start.type)
        self.at.store(start, place)
        return place

    def load(self, place: ir.Value, kind: ir.Type) -> ir.Value:
        """Vectors need not be aligned beyond their elements."""
        align = 4 if isinstance(kind, ir.VectorType) else None
        return self.at.load(place, typ=kind, align=align)

    def store(self, value: ir.Value, place: ir.Value) -> None:
        align = 4 if isinstance(value.type, ir.VectorType) else None
        self.at.store(value, place, align=align)

    def address(self, base: ir.Value, index: ir.Value | int, kind: ir.Type = BYTE) -> ir.Value:
        """Of element ``index`` in an array of ``kind`` that begins at ``base``."""
        index = long(index) if isinstance(index, int) else index
        return self.at.gep(base, [index], source_etype=kind)

    def call(self, name: str, result: ir.Type, *arguments: ir.Value, fastmath: Sequence[str] = ()) -> ir.Value:
        """An intrinsic, a C function of this process, or a function that the module has already."""
        function = self.module.globals.get(name)
        if function is None:
            kinds = [POINTER if isinstance(each.type, ir.PointerType) else each.type for each in arguments]
            function = ir.Function(self.module, ir.FunctionType(result, kinds), name)
        return self.at.call(function, arguments, fastmath=fastmath)

    def splat(self, scalar: ir.Value, lanes: int) -> ir.Value:
        """A vector with ``scalar`` in every lane."""
        one = self.at.insert_element(
            ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined), scalar, ir.Constant(INT, 0)
        )
        return self.at.shuffle_vector(one, one, ir.Constant(ir.VectorType(INT, lanes), [0] * lanes))

    @contextmanager
    def loop(self, start: ir.Value, stop: ir.Value, step: ir.Value | int = 1) -> Iterator[ir.Value]:
        """What is written inside happens for ``start``, ``start + step`` and so on, below ``stop``."""
        counter = self.variable(start)
        head, body, end = (self.function.append_basic_block(name) for name in ("head", "body", "end"))
        self.at.branch(head)
        self.at.position_at_end(head)
        value = self.load(counter, LONG)
        self.at.cbranch(self.at.icmp_signed("<", value, stop), body, end)
        self.at.position_at_end(body)
        yield value
        self.at.store(self.at.add(value, long(step) if isinstance(step, int) else step), counter)
        self.at.branch(head)
        self.at.position_at_end(end)

    def share(self, count: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Of ``count`` turns of a loop, the first of this piece and the first of the next; in a shared function."""
        _, piece, pieces = self.parameters
        first = self.at.sdiv(self.at.mul(count, piece), pieces)
        return first, self.at.sdiv(self.at.mul(count, self.at.add(piece, long(1))), pieces)

    def share_out(self, name: str, fields: Sequence[ir.Value], pieces: ir.Value) -> None:
        """The function ``name`` does every one of ``pieces``, on all threads; it begins with ``received``."""
        kind = ir.LiteralStructType([field.type for field in fields])
        whole = ir.Constant(kind, ir.Undefined)
        for index, field in enumerate(fields):
            whole = self.at.insert_value(whole, field, index)
        self.call(SHARE_OUT, NOTHING, self.module.globals[name], self.variable(whole), pieces)

    def received(self, kinds: Sequence[ir.Type]) -> list[ir.Value]:
        """The fields that ``share_out`` was given."""
        whole = self.load(self.parameters[0], ir.LiteralStructType(kinds))
        return [self.at.extract_value(whole, index) for index in range(len(kinds))]


def long(value: int) -> ir.Constant:
    return ir.Constant(LONG, value)


class CompiledModule:
    """The functions of a module, ready to be called as long as this lives."""

    def __init__(self, module: ir.Module | str):
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        target = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3, jit=True
        )
        parsed = binding.parse_assembly(str(module))
        parsed.triple = target.triple
        parsed.verify()
        passes = binding.create_pass_builder(target, binding.create_pipeline_tuning_options(speed_level=3))
        passes.getModulePassManager().run(parsed, passes)
        self._engine = binding.create_mcjit_compiler(parsed, target)
        self._engine.finalize_object()

    def function(self, name: str, *kinds: Any) -> Callable[..., None]:
        """``kinds``: the ctypes of its arguments. Python's lock is free while it runs, and it keeps the code alive."""
        function: Callable[..., None] = ctypes.CFUNCTYPE(None, *kinds)(self.address(name))
        function.keeper = self  # type: ignore[attr-defined]
        return function

    def address(self, name: str) -> int:
        return int(self._engine.get_function_address(name))


def _one() -> int:
    """A 1 that a compiled function wrote."""
    module = ir.Module("tried")
    body = FunctionBody(module, "write", [POINTER])
    body.store(long(1), body.parameters[0])
    body.at.ret_void()
    place = ctypes.c_int64()
    CompiledModule(module).function("write", ctypes.c_void_p)(ctypes.addressof(place))
    return place.value
