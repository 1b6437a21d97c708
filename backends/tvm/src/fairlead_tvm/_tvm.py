"""Everything that this wheel takes from TVM 0.27: expressions, loops, kernels, compiling, storing and running.

TVM renames what it has from release to release; nothing else in this wheel imports it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch

from fairlead import processor as host
from fairlead.ir import DType
from fairlead_tvm._excepthook import excepthook_kept
from fairlead_tvm._openmp import ENTRY, ENTRY_NAME, POINTER, launch_source, openmp_is_there, set_launch

with excepthook_kept():
    import tvm
    import tvm_ffi
    from tvm import relax, tirx
    from tvm.tirx import compilation_pipeline
    from tvm.tirx.stmt import ForKind

__all__ = [
    "Buffer", "Expr", "Loop", "Module", "PARALLEL", "SERIAL", "Stmt", "UNROLLED", "VECTOR", "abs_", "added", "all_of",
    "alloc", "any_of", "as_bits", "bind", "buffer", "call", "cast", "compiled", "const", "differ", "eq", "extern",
    "flat_view", "guarded", "index", "invert", "is_constant", "kernel", "loaded", "loop", "maximum", "minimum",
    "multiplied", "narrowed", "ne", "negate", "processor", "rounded_to_bf16", "runner", "same", "select", "sequence",
    "size_var", "sizes", "store", "stored", "subtracted", "truncated", "type_name", "variable", "vector_bytes",
    "widened",
]  # fmt: skip

Expr: TypeAlias = Any
"""A scalar of TensorIR; Python's operators make further ones."""
Stmt: TypeAlias = Any
Buffer: TypeAlias = Any
Loop: TypeAlias = int

SERIAL: Loop = ForKind.SERIAL
PARALLEL: Loop = ForKind.PARALLEL
VECTOR: Loop = ForKind.VECTORIZED
UNROLLED: Loop = ForKind.UNROLLED

_PIPELINE = "fairlead"
_STACK = 1 << 13
"""So many bytes of the stack one local of a kernel takes at most."""
_LOADED: list[Any] = []
"""Machine code that others have the address of."""


def type_name(dtype: DType) -> str:
    """What TVM calls the type of an element in a kernel: bf16 is f32 there, since TVM's own is not right in views."""
    return "float32" if dtype is DType.bf16 else dtype.long_name


def _memory_type(dtype: DType) -> str:
    """What TVM calls the type of an element in memory."""
    return "int16" if dtype is DType.bf16 else dtype.long_name


def widened(bits: Expr) -> Expr:
    """The f32 of which a bf16 has the upper half."""
    return tirx.reinterpret("float32", tirx.Cast("int32", bits) << tirx.const(16, "int32"))


def narrowed(x: Expr) -> Expr:
    """The upper half of an f32 that `rounded_to_bf16` gave."""
    return tirx.Cast("int16", tirx.reinterpret("int32", x) >> tirx.const(16, "int32"))


def rounded_to_bf16(x: Expr) -> Expr:
    """The nearest f32 that is a bf16, the even one of two; a NaN stays one."""
    bits = tirx.reinterpret("int32", x)
    odd = (bits >> tirx.const(16, "int32")) & tirx.const(1, "int32")
    near = (bits + tirx.const(0x7FFF, "int32") + odd) & tirx.const(-0x10000, "int32")
    return tirx.Select(eq(x, x), tirx.reinterpret("float32", near), tirx.const(float("nan"), "float32"))


def const(value: Any, dtype: DType) -> Expr:
    """A number. Integers keep the bits that fit, as C++ converts them."""
    if dtype is DType.bool:
        return tirx.const(bool(value), "bool")
    if dtype.is_integer:
        bits = 8 * dtype.itemsize
        value = int(value) % (1 << bits)
        signed = dtype.value[0] == "i" and value >= 1 << (bits - 1)
        return tirx.const(value - (1 << bits) if signed else value, type_name(dtype))
    if dtype is DType.bf16:
        value = torch.tensor(float(value), device="cpu").bfloat16()
    return tirx.const(float(value), type_name(dtype))


def is_constant(x: Expr) -> bool:
    """Whether an expression is a number."""
    return isinstance(x, tirx.IntImm | tirx.FloatImm)


def cast(x: Expr, dtype: DType) -> Expr:
    """The machine's own conversion; a float that is beyond an integer gives any of its values."""
    return tirx.Cast(type_name(dtype), x)


def as_bits(x: Expr, dtype: DType) -> Expr:
    """The same bits as another type of the same size."""
    return tirx.reinterpret(type_name(dtype), x)


def select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """One of two values, both of which are computed."""
    return tirx.Select(condition, yes, no)


def added(x: Expr, y: Expr, dtype: DType) -> Expr:
    """A sum that wraps.

    TVM, and LLVM behind it, take for granted that no sum, difference or product of integers of 32 bits or more leaves
    their range, signed or not. So those of 32 bits are made in 64, and those of 64 of halves, which do not.
    """
    if dtype is DType.i64:
        return _signed(*_sum_of_halves(_halves(x), _halves(y), _wide(0)))
    return cast(cast(x, DType.i64) + cast(y, DType.i64), dtype) if dtype is DType.i32 else x + y


def subtracted(x: Expr, y: Expr, dtype: DType) -> Expr:
    """A difference that wraps, as `added`."""
    if dtype is DType.i64:
        return _signed(*_sum_of_halves(_halves(x), _halves(~y), _wide(1)))
    return cast(cast(x, DType.i64) - cast(y, DType.i64), dtype) if dtype is DType.i32 else x - y


def multiplied(x: Expr, y: Expr, dtype: DType) -> Expr:
    """A product that wraps, as `added`."""
    if dtype is DType.i64:
        (low, high), (other, upper) = _halves(x), _halves(y)
        product = low * other
        return _signed(_low(product), (product >> _wide(32)) + _low(high * other) + _low(low * upper))
    return cast(cast(x, DType.i64) * cast(y, DType.i64), dtype) if dtype is DType.i32 else x * y


_HALF = (1 << 32) - 1


def _wide(value: int) -> Expr:
    return tirx.const(value, "uint64")


def _low(x: Expr) -> Expr:
    return x & _wide(_HALF)


def _halves(x: Expr) -> tuple[Expr, Expr]:
    """The lower and the upper half of an integer of 64 bits, without a sign."""
    bits = tirx.Cast("uint64", x)
    return _low(bits), bits >> _wide(32)


def _sum_of_halves(x: tuple[Expr, Expr], y: tuple[Expr, Expr], carry: Expr) -> tuple[Expr, Expr]:
    low = x[0] + y[0] + carry
    return _low(low), x[1] + y[1] + (low >> _wide(32))


def _signed(low: Expr, high: Expr) -> Expr:
    """The integer of its halves, of which the upper may have more bits than stay."""
    return tirx.Cast("int64", (high << _wide(32)) | low)


def eq(x: Expr, y: Expr) -> Expr:
    """``x == y``, as an expression also where both are the same."""
    return tirx.EQ(x, y)


def ne(x: Expr, y: Expr) -> Expr:
    """``x != y``, true of a NaN too: TVM's own is false of it."""
    return tirx.Not(tirx.EQ(x, y))


def all_of(x: Expr, y: Expr) -> Expr:
    return tirx.And(x, y)


def any_of(x: Expr, y: Expr) -> Expr:
    return tirx.Or(x, y)


def differ(x: Expr, y: Expr) -> Expr:
    """Exclusive or of booleans, which TVM does not compare."""
    return tirx.Or(tirx.And(x, tirx.Not(y)), tirx.And(tirx.Not(x), y))


def negate(x: Expr) -> Expr:
    """``not x`` of a boolean."""
    return tirx.Not(x)


def invert(x: Expr) -> Expr:
    """``~x`` of an integer."""
    return ~x


def minimum(x: Expr, y: Expr) -> Expr:
    return tirx.Min(x, y)


def maximum(x: Expr, y: Expr) -> Expr:
    return tirx.Max(x, y)


def truncated(x: Expr, y: Expr, *, rest: bool = False) -> Expr:
    """The quotient of integers, cut off towards zero, or what it leaves."""
    return tirx.Mod(x, y) if rest else tirx.Div(x, y)


def abs_(x: Expr) -> Expr:
    return tirx.abs(x)


def call(name: str, x: Expr) -> Expr:
    """A function that LLVM has for vectors too: floor, ceil, trunc, sqrt, exp, log, sin, cos."""
    return getattr(tirx, name)(x)


def extern(name: str, dtype: DType, *args: Expr) -> Expr:
    """A function of the C library, of scalars: in a vector loop TVM would call it for the first element only."""
    return tirx.call_pure_extern(type_name(dtype), name, *args)


def variable(name: str, dtype: DType) -> Expr:
    return tirx.Var(name, type_name(dtype))


def size_var(name: str) -> Expr:
    """A size that is known only at the call."""
    return tirx.Var(name, "int64")


def bind(var: Expr, value: Expr) -> Stmt:
    return tirx.Bind(var, value)


def loop(i: Expr, extent: Expr | int, body: Stmt, kind: Loop) -> Stmt:
    """``for i in range(extent): body``."""
    return tirx.For(i, index(0), index(extent), kind, body)


def index(value: Expr | int) -> Expr:
    """A place or a size as an expression."""
    return tirx.const(value, "int64") if isinstance(value, int) else value


def sequence(statements: Sequence[Stmt]) -> Stmt:
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def store(target: Buffer, value: Expr, *indices: Expr | int) -> Stmt:
    return tirx.BufferStore(target, value, [index(i) for i in indices])


def guarded(condition: Expr, then: Stmt, otherwise: Stmt | None = None) -> Stmt:
    return tirx.IfThenElse(condition, then, otherwise)


def buffer(name: str, shape: Sequence[Expr | int], dtype: DType, *, aligned: bool = False) -> Buffer:
    """Memory of a tensor that is passed, or, where it is aligned, that `alloc` makes."""
    alignment = 64 if aligned else dtype.itemsize
    return tirx.decl_buffer([index(d) for d in shape], _memory_type(dtype), name, data_alignment=alignment)


def flat_view(whole: Buffer, count: Expr | int, dtype: DType) -> tuple[Buffer, Stmt]:
    """The same memory as a vector, and the statement that declares it."""
    view = tirx.decl_buffer(
        [index(count)], _memory_type(dtype), f"{whole.name}_flat", data=whole.data, data_alignment=dtype.itemsize
    )
    return view, tirx.DeclBuffer(view, data=whole.data)


def alloc(local: Buffer) -> Stmt:
    """Memory for the block: on the stack, where LLVM makes registers of it, if it is small and of known size.

    TVM takes from 1024 bytes on from a pool, as that of a whole tile of accumulators is.
    """
    sizes = [d.value for d in local.shape if isinstance(d, tirx.IntImm)]
    known = len(sizes) == len(local.shape) and 0 < math.prod(sizes) * local.dtype.itemsize <= _STACK
    return tirx.AllocBuffer(local, annotations={"disable_lower_builtin": tirx.const(1, "int32")} if known else {})


def kernel(parameters: Sequence[Expr], body: Stmt, *, shared: bool = False) -> Any:
    """A function of buffers and sizes, the last of which it writes; none of them overlap.

    ``shared`` says that it has loops whose steps several threads take.
    """
    if shared and _with_openmp():
        entry = tirx.Evaluate(tirx.call_extern("int32", ENTRY_NAME))
        whole = sequence([entry, body])
        body = tirx.AttrStmt(tirx.const(0, "int32"), "pragma_import_llvm", tvm.ir.StringImm(ENTRY), whole)
    return tirx.PrimFunc(list(parameters), body).with_attr({"tirx.noalias": True})


class Module:
    """A Relax function under construction, with the kernels that it calls."""

    def __init__(self) -> None:
        self._builder = relax.BlockBuilder()
        self._kernels = 0

    @staticmethod
    def parameter(name: str, shape: Sequence[Expr | int], dtype: DType) -> Any:
        return relax.Var(name, relax.TensorType([index(d) for d in shape], _memory_type(dtype)))

    @staticmethod
    def sizes(symbols: Sequence[Expr]) -> Any:
        """The parameter that carries the values of symbols."""
        return relax.Var("sizes", relax.ShapeType(list(symbols)))

    @contextlib.contextmanager
    def function(self, parameters: Sequence[Any], outputs: list[Any]) -> Iterator[None]:
        """The body of ``main``; ``outputs`` is filled within."""
        with self._builder.function("main", list(parameters)):
            with self._builder.dataflow():
                yield
                results = self._builder.emit_output(relax.Tuple(outputs))
            self._builder.emit_func_output(results)

    def call(self, function: Any, args: Sequence[Any], shape: Sequence[Expr | int], dtype: DType) -> Any:
        """What a kernel writes, given its other arguments."""
        self._kernels += 1
        name = self._builder.add_func(function, f"kernel_{self._kernels}")
        out = relax.TensorType([index(d) for d in shape], _memory_type(dtype))
        return self._builder.emit(relax.call_tir(name, list(args), out_ty=out))

    def finished(self) -> Any:
        return self._builder.get()


@functools.cache
def _target() -> Any:
    return tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()})


@functools.cache
def vector_bytes() -> int:
    """The width of the processor's vectors that are worth using."""
    with _target():
        features = tvm.target.codegen.llvm_get_cpu_features()
    return 64 if "avx512f" in features else 32 if "avx2" in features else 16


@functools.cache
def processor() -> str:
    """Which processor this is: what the system calls it, where that is known, and what LLVM makes of it."""
    with _target():
        features = sorted(map(str, tvm.target.codegen.llvm_get_cpu_features()))
    return " ".join((host.name(), str(_target().attrs["mcpu"]), *features))


@functools.cache
def _with_openmp() -> bool:
    """Whether kernels that are loaded from now on share their loops among OpenMP's threads."""
    if not openmp_is_there():
        return False
    module, outputs = Module(), list[Any]()
    x, y = (buffer(name, [1], DType.f32) for name in "xy")
    parameter = Module.parameter("x", [1], DType.f32)
    with module.function([parameter], outputs):
        outputs.append(module.call(kernel([x, y], store(y, x[index(0)], 0)), [parameter], [1], DType.f32))
    lines = compiled(module.finished()).imports[0].inspect_source("ll").splitlines()
    header = "\n".join(line for line in lines if line.startswith("target "))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "launch.ll")
        path.write_text(launch_source(header))
        code = tvm_ffi.get_global_func("ffi.Module.load_from_file.ll")(str(path), "ll")
    set_launch(tvm_ffi.libinfo.find_libtvm_ffi(), code["address"]())
    _LOADED.append(code)
    return True


@functools.cache
def _pipeline() -> str:
    """The passes below loops, without those that simplify: to TVM ``x - x`` is 0 and ``x == x`` true, of a NaN too."""
    transform = tirx.transform
    lower = (
        transform.FlattenBuffer(), transform.VectorizeLoop(True),
        transform.UnrollLoop(), transform.VerifyMemory(), transform.AnnotateEntryFunc(), transform.SplitHostDevice(),
        transform.MakePackedAPI(),
    )  # fmt: skip
    finish = (transform.LowerTVMBuiltin(), transform.LowerIntrin())
    passes = (
        tvm.transform.Sequential(list(lower)),
        lambda: tvm.transform.Sequential(list(finish)),
        compilation_pipeline.finalize_device_passes,
    )
    compilation_pipeline.register_tir_pipeline(_PIPELINE, lambda: passes)
    return _PIPELINE


def compiled(module: Any) -> Any:
    """The module as machine code, for this processor."""
    transform = relax.transform
    passes = tvm.transform.Sequential(
        [
            transform.ToNonDataflow(), transform.RemovePurityChecking(), transform.CallTIRRewrite(),
            transform.StaticPlanBlockMemory(), transform.LowerAllocTensor(), transform.KillAfterLastUse(),
            transform.LowerRuntimeBuiltin(), transform.ComputePrimValue(), transform.VMShapeLower(),
            transform.AttachGlobalSymbol(),
        ]
    )  # fmt: skip
    with _target():
        return relax.build(passes(module), target=_target(), relax_pipeline=None, tir_pipeline=_pipeline()).mod


def same(one: Any, other: Any) -> bool:
    """Whether two modules say the same."""
    return bool(tvm_ffi.structural_equal(one, other))


def runner(program: Any) -> Callable[..., Sequence[Any]]:
    """``main`` of a program, to be called by one thread at a time."""
    machine = relax.VirtualMachine(program, tvm.cpu())
    found: Callable[..., Sequence[Any]] = machine["main"]
    return found


def sizes(values: Sequence[int]) -> Any:
    """The argument for `Module.sizes`."""
    return tvm_ffi.Shape(tuple(values))


def stored(program: Any) -> tuple[bytes, bytes]:
    """A program as bytes: what calls which kernel, and the kernels as LLVM's bitcode. No other tool is needed."""
    with tempfile.TemporaryDirectory() as folder:
        calls, code = Path(folder, "calls.ro"), Path(folder, "kernels.bc")
        program.write_to_file(str(calls), "relax.VMExecutable")
        (library,) = program.imports or (None,)
        if library is not None:
            library.write_to_file(str(code), "bc")
        return calls.read_bytes(), code.read_bytes() if library is not None else b""


def loaded(calls: bytes, code: bytes) -> Any:
    """What `stored` gave; its bytes become machine code, so they have to be trusted."""
    load = tvm_ffi.get_global_func
    if POINTER.encode() in code:
        _with_openmp()
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "calls.ro"), Path(folder, "kernels.bc")
        for path, data in zip(paths, (calls, code), strict=True):
            path.write_bytes(data)
        program = load("ffi.Module.load_from_file.relax.VMExecutable")(str(paths[0]))
        if code:
            program.import_module(load("ffi.Module.load_from_file.ll")(str(paths[1]), "ll"))
    return program
