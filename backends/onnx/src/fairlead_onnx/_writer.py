"""Writes ONNX nodes and constants as plain data; the model is built from them at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from fairlead.ir import Dim, DType
from fairlead_onnx._target import ARITHMETIC, Target

__all__ = ["CONTRIB", "Body", "Declined", "Quantised", "Ref", "Step", "Writer", "computed"]

CONTRIB = "com.microsoft"

Attribute: TypeAlias = "int | float | str | tuple[int, ...]"
Number: TypeAlias = "bool | int | float"


class Declined(Exception):
    """Raised by a rule that cannot write a node exactly; the text is the reason that a user reads."""


class Ref(NamedTuple):
    """A tensor of the ONNX graph: its name and the element type that it is computed in."""

    name: str
    dtype: DType


class Step(NamedTuple):
    """One ONNX node."""

    op: str
    domain: str
    inputs: tuple[str, ...]
    attributes: tuple[tuple[str, Attribute], ...]
    outputs: tuple[str, ...]
    bodies: tuple[tuple[str, Body], ...] = ()

    def reads(self) -> frozenset[str]:
        """The tensors that it needs, those that its bodies read from around them among them."""
        return frozenset(self.inputs).union(*(body.reads() for _, body in self.bodies))


class Body(NamedTuple):
    """A graph within a node: what it is given, and what it gives, with shapes. It may read what is around it."""

    inputs: tuple[tuple[Ref, tuple[Dim, ...]], ...]
    steps: tuple[Step, ...]
    constants: tuple[Constant, ...]
    outputs: tuple[tuple[Ref, tuple[Dim, ...]], ...]

    def reads(self) -> frozenset[str]:
        """Names that its steps read; none of its own is one of the graphs around it."""
        return frozenset().union(*(step.reads() for step in self.steps))


class Quantised(NamedTuple):
    """What a DequantizeLinear reads; the axis along which scales lie, None for a single one."""

    values: Ref
    scale: Ref
    zero: Ref | None
    axis: int | None


class Constant(NamedTuple):
    """One ONNX initializer: few numbers, never a weight."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    values: tuple[Number, ...]


def computed(dtype: DType) -> DType:
    """The element type in which values of ``dtype`` are computed: halves in f32, everything else in itself."""
    return DType.f32 if dtype in (DType.f16, DType.bf16) else dtype


class Writer:
    """Collects the steps and constants of one ONNX graph. Equal steps are written once.

    ``half`` is the type of the product that is written now, for targets with a kernel that computes it in halves.
    ``quantised`` says of what each dequantised tensor is, ``unsigned`` names for signed bytes the same plus 128.
    ``indices`` has each index that is to be asked about, by its name, the size of the dimension, and whether places
    below 0 count from the end, and whether its sizes are known. ``looked_up`` has the table, the places, and the size
    of the table, of rows that were looked up. ``fixed`` names the inputs that are constants.
    """

    def __init__(self, target: Target, symbol: Callable[[str], Ref], prefix: str = "t") -> None:
        self.target = target
        self._prefix = prefix
        self.steps: list[Step] = []
        self.constants: dict[object, Constant] = {}
        self.half: DType | None = None
        self.quantised: dict[str, Quantised] = {}
        self.unsigned: dict[str, Ref] = {}
        self.indices: dict[tuple[str, Dim, bool], tuple[Ref, bool]] = {}
        self.looked_up: dict[str, tuple[Ref, Ref, Dim]] = {}
        self.fixed: frozenset[str] = frozenset()
        self._symbol = symbol
        self._halves: dict[str, Ref] = {}
        self._rounded: dict[str, DType] = {}
        self._written: dict[object, tuple[Ref, ...]] = {}
        self._producers: dict[str, Step] = {}
        self._count = 0

    def op(
        self, op: str, *inputs: Ref | None, dtype: DType | None = None, domain: str = "", **attributes: Attribute
    ) -> Ref:
        """One node of one result, of element type ``dtype``, by default that of its first input."""
        if dtype is None:
            first = inputs[0]
            assert first is not None
            dtype = first.dtype
        return self.ops(op, *inputs, dtypes=(dtype,), domain=domain, **attributes)[0]

    def ops(
        self, op: str, *inputs: Ref | None, dtypes: Sequence[DType], domain: str = "", **attributes: Attribute
    ) -> tuple[Ref, ...]:
        """One node with a result for each of ``dtypes``."""
        if self.half is not None and self.half in self.target.kernels.get(op, ()):
            return self._in_halves(self.half, op, inputs, domain, attributes)
        self._need_kernel(op, inputs)
        if op == "Concat" and 0 < self.target.most_joined < len(inputs):
            raise Declined(f"{self.target.name} joins {self.target.most_joined} tensors, not {len(inputs)}")
        names = [r.name if r is not None else "" for r in inputs]
        while names and not names[-1]:
            names.pop()
        key = (op, domain, tuple(names), tuple(sorted(attributes.items())), tuple(dtypes))
        refs = self._written.get(key)
        if refs is None:
            refs = tuple(Ref(self._name(), d) for d in dtypes)
            step = Step(op, domain, key[2], key[3], tuple(r.name for r in refs))
            self.steps.append(step)
            self._producers |= dict.fromkeys(step.outputs, step)
            self._written[key] = refs
        return refs

    def _need_kernel(self, op: str, inputs: Sequence[Ref | None]) -> None:
        """Raises `Declined` where the runtime is known to have no kernel for what an op computes on."""
        given = inputs[1 if op == "Where" else 0]
        if not self.target.complete or op == "Cast" or given is None:
            return
        if given.dtype not in self.target.kernels.get(op, ()):
            raise Declined(f"{self.target.name} has no {op} for {given.dtype}")

    def inside(self, symbols: Callable[[str], Ref | None]) -> Writer:
        """A writer for a body: its names are its own. A symbol that ``symbols`` does not know is one of this graph.

        No result of a model can say of an index in there whether it is in range, so that none is guarded, which would
        hide it.
        """
        target = msgspec.structs.replace(self.target, unchecked=False, wraps=False, pools=False)
        return Writer(target, lambda name: symbols(name) or self.symbol(name), f"{self._name()}_")

    def given(self, dtype: DType) -> Ref:
        """A tensor that the body gets from the node that it is of."""
        return Ref(self._name(), dtype)

    def control(
        self, op: str, *inputs: Ref | None, dtypes: Sequence[DType], bodies: dict[str, Body], **attributes: Attribute
    ) -> tuple[Ref, ...]:
        """One node of control flow."""
        refs = tuple(Ref(self._name(), d) for d in dtypes)
        names = tuple(r.name if r is not None else "" for r in inputs)
        step = Step(op, "", names, tuple(attributes.items()), tuple(r.name for r in refs), tuple(bodies.items()))
        self.steps.append(step)
        self._producers |= dict.fromkeys(step.outputs, step)
        return refs

    def body(
        self, inputs: Sequence[tuple[Ref, tuple[Dim, ...]]], outputs: Sequence[tuple[Ref, tuple[Dim, ...]]]
    ) -> Body:
        """What was written, as a body. Each output is a step's of its own, as ONNX asks for."""
        named = tuple((self.rename(ref, self._name()), shape) for ref, shape in outputs)
        return Body(tuple(inputs), tuple(self.steps), tuple(self.constants.values()), named)

    def _in_halves(
        self, half: DType, op: str, inputs: Sequence[Ref | None], domain: str, attributes: dict[str, Attribute]
    ) -> tuple[Ref, ...]:
        """One node of one result whose operands are rounded to the type that they stand for, the result widened."""
        narrow = [None if r is None else self._halves.get(r.name) or self.cast(r, half) for r in inputs]
        self.half = None
        out = self.op(op, *narrow, dtype=half, domain=domain, **attributes)
        self.half = half
        return (self.widen(out),)

    def widen(self, ref: Ref) -> Ref:
        """The tensor in the type that it is computed in; a half remembers where it came from."""
        dtype = computed(ref.dtype)
        if dtype is ref.dtype:
            return ref
        wide = self.op("Cast", ref, dtype=dtype, to=ONNX_DTYPES[dtype])
        self._halves[wide.name] = ref
        return wide

    def producer(self, ref: Ref) -> Step | None:
        """The step that makes a tensor; None for an input or a constant."""
        return self._producers.get(ref.name)

    def is_fixed(self, ref: Ref) -> bool:
        """Whether a tensor is computed of inputs that are constants.

        One that is dequantised is not: runtimes keep that step, to compute what reads it in integers.
        """
        step = self.producer(ref)
        if step is None:
            return ref.name in self.fixed
        return step.op != "DequantizeLinear" and all(self.is_fixed(Ref(n, ref.dtype)) for n in step.inputs)

    def same(
        self, op: str, *inputs: Ref, result: DType | None = None, domain: str = "", **attributes: Attribute
    ) -> Ref:
        """One node whose inputs share an element type.

        Widened, and narrowed again, where the runtime has no kernel for it. The result has the type of the inputs, or
        ``result`` for an op whose result type is its own (a comparison).
        Raises `Declined` where no exact wider type has a kernel.
        """
        dtype = inputs[0].dtype
        wide = self.kernel_dtype(op, dtype)
        refs = [self.cast(r, wide) for r in inputs]
        is_compared = result is DType.bool and dtype in _WORDS
        if is_compared and "Less of integers" in self.target.avoided and not any(map(self._is_small, refs)):
            return self._compared(op, *refs)
        out = self.op(op, *refs, dtype=result or wide, domain=domain, **attributes)
        return out if result else self.cast(self.with_nan(op, out, *refs), dtype)

    def _compared(self, op: str, a: Ref, b: Ref) -> Ref:
        """A comparison of integers by what is left of a difference, for runtimes that compare them in f32.

        A difference wraps, and is 0 where two numbers are equal; no other integer becomes 0 in f32.
        """
        if op == "Equal":
            return self.same("Equal", self.same("Sub", a, b), self.number(0, a.dtype), result=DType.bool)
        if op in ("Greater", "GreaterOrEqual"):
            a, b = b, a
        larger = self.same("Max", a, b)
        if op in ("LessOrEqual", "GreaterOrEqual"):
            return self._compared("Equal", larger, b)
        return self.op("Not", self._compared("Equal", larger, a))

    def _is_small(self, ref: Ref) -> bool:
        """Whether integers are known to be such as f32 holds: with one of them a comparison in f32 is exact."""
        step = self.producer(ref)
        if step is None:
            constant = self._constant(ref)
            return constant is not None and all(abs(v) < _HELD_BY_F32 for v in constant.values)
        if step.op == "Range":
            return all(self._is_small(Ref(name, ref.dtype)) for name in step.inputs)
        return step.op in ("Expand", "Reshape", "Unsqueeze") and self._is_small(Ref(step.inputs[0], ref.dtype))

    def with_nan(self, op: str, out: Ref, *inputs: Ref) -> Ref:
        """The result of an op with a NaN where an input has one, for runtimes that lose it there."""
        if op not in self.target.drops_nan or not out.dtype.is_floating:
            return out
        for ref in inputs:
            if "IsNaN" in self.target.avoided:
                out = self.op("Where", self.op("Equal", ref, ref, dtype=DType.bool), out, ref, dtype=out.dtype)
            else:
                out = self.op("Where", self.op("IsNaN", ref, dtype=DType.bool), ref, out, dtype=out.dtype)
        return out

    def abs(self, x: Ref) -> Ref:
        """The magnitude of each element, by a comparison where the runtime's own cannot be trusted."""
        if "Abs" not in self.target.avoided:
            return self.same("Abs", x)
        zero = self.number(0.0 if x.dtype.is_floating else 0, x.dtype)
        size = self.select(self.same("Less", zero, x, result=DType.bool), x, self.same("Sub", zero, x))
        if not x.dtype.is_floating:
            return size
        return self.select(self.same("Equal", x, zero, result=DType.bool), zero, size)  # 0 - 0 may have become -0

    def extremum(self, op: str, a: Ref, b: Ref) -> Ref:
        """The larger (``Max``) or smaller (``Min``) of two, by a choice where the runtime has it not exactly."""
        if self.has(op, a.dtype):
            return self.same(op, a, b)
        low, high = (a, b) if op == "Max" else (b, a)
        return self.select(self.same("Less", low, high, result=DType.bool), b, a)

    def same_axes(self, op: str, x: Ref, axes: tuple[int, ...], keep: bool) -> Ref:
        """A reduction over ``axes``, widened as in `same`."""
        wide = self.kernel_dtype(op, x.dtype)
        return self.cast(self.op(op, self.cast(x, wide), self.ints(*axes), keepdims=int(keep)), x.dtype)

    def select(self, condition: Ref, yes: Ref, no: Ref) -> Ref:
        """``yes`` where the condition holds, ``no`` elsewhere, widened as in `same`.

        A runtime may make 0 of a -0 in ``yes``: a result whose zeros have a sign belongs into ``no``.
        """
        dtype = yes.dtype
        wide = self.kernel_dtype("Where", dtype)
        out = self.op("Where", condition, self.cast(yes, wide), self.cast(no, wide), dtype=wide)
        return self.cast(out, dtype)

    def may_be_negative_zero(self, ref: Ref) -> bool:
        """Whether a tensor may have a -0, as far as its producer tells."""
        if not ref.dtype.is_floating:
            return False
        step = self.producer(ref)
        if step is not None and step.op in ("Expand", "Reshape", "Unsqueeze"):
            return self.may_be_negative_zero(Ref(step.inputs[0], ref.dtype))
        constant = self._constant(ref)
        if constant is not None:
            return any(v == 0 and math.copysign(1.0, v) < 0 for v in constant.values)
        return step is None or step.op not in _UNSIGNED

    def _constant(self, ref: Ref) -> Constant | None:
        return next((c for c in self.constants.values() if c.name == ref.name), None)

    def is_number(self, ref: Ref) -> bool:
        """Whether a tensor is a 0-d constant."""
        constant = self._constant(ref)
        return constant is not None and constant.shape == ()

    def kernel_dtype(self, op: str, dtype: DType) -> DType:
        """The element type in which the runtime computes ``op`` exactly for values of ``dtype``."""
        wide = self._wide(op, dtype)
        if wide is None:
            raise Declined(f"{self.target.name} has no {op} for {dtype}")
        return wide

    def has(self, op: str, dtype: DType) -> bool:
        """Whether the runtime computes ``op`` exactly for values of ``dtype``, in itself or a wider type."""
        return self._wide(op, dtype) is not None

    def _wide(self, op: str, dtype: DType) -> DType | None:
        kernels = self.target.kernels.get(op, ARITHMETIC)
        return next((wide for wide in (dtype, *_WIDER.get(dtype, ())) if wide in kernels), None)

    def const(self, values: Sequence[Number], dtype: DType, shape: tuple[int, ...] | None = None) -> Ref:
        """A small constant, 1-D unless ``shape`` says otherwise."""
        shape = (len(values),) if shape is None else shape
        key = (dtype, shape, tuple(map(_bits, values)))
        known = self.constants.get(key)
        if known is None:
            known = self.constants[key] = Constant(self._name(), dtype, shape, tuple(values))
        return Ref(known.name, dtype)

    def number(self, value: Number, dtype: DType) -> Ref:
        """A 0-d constant."""
        return self.const((value,), dtype, ())

    def ints(self, *values: int) -> Ref:
        """A 1-D constant of 64-bit integers: axes, shapes, bounds."""
        return self.const(values, DType.i64)

    def cast(self, ref: Ref, dtype: DType) -> Ref:
        """The same numbers in another element type, converted as torch does."""
        if ref.dtype == dtype:
            return ref
        if dtype is DType.bool and (ref.dtype.is_floating or not self.target.casts_truth):
            zero = self.number(0.0 if ref.dtype.is_floating else 0, ref.dtype)
            if ref.dtype.is_floating:
                return self.op("Not", self.op("Equal", ref, zero, dtype=DType.bool))
            return self.op("Not", self.same("Equal", ref, zero, result=DType.bool))
        if ref.dtype.is_floating and dtype in (DType.u8, DType.i8):
            # torch goes through a wide integer, so that numbers out of range wrap; OpenVINO keeps some within the range
            ref = self.cast(ref, DType.i64)
            if dtype is DType.u8 and "Div of integers" not in self.target.avoided and self.has("Mod", DType.i64):
                return self.wrapped(ref, dtype)
        if dtype in self.target.widened and (ref.dtype.is_floating or ref.dtype in _WORDS):
            ref = self._within(self.cast(ref, DType.i32), dtype)
        if dtype in self.target.cuts and not self._is_half(ref, dtype):
            ref = self._nearest(self.cast(ref, DType.f32), dtype, may_be_nan=ref.dtype.is_floating)
        return self.op("Cast", ref, dtype=dtype, to=ONNX_DTYPES[dtype])

    def wrapped(self, ref: Ref, dtype: DType) -> Ref:
        """A 64-bit integer in the bits of a shorter one, by arithmetic: of two conversions runtimes make one."""
        if dtype is DType.i64:
            return ref
        base = self.number(1 << 8 * dtype.itemsize, DType.i64)
        low = self.number(0 if dtype is DType.u8 else 1 << 8 * dtype.itemsize - 1, DType.i64)
        wrapped = self.same("Sub", self.same("Mod", self.same("Add", ref, low), base), low)
        return self.op("Cast", wrapped, dtype=dtype, to=ONNX_DTYPES[dtype])

    def _within(self, ref: Ref, dtype: DType) -> Ref:
        """An integer of 32 bits wrapped into the range of a shorter one with a sign, in 32 bits.

        The upper bits leave by a product, which wraps; a quotient of so few bits is exact in f32 too.
        """
        beyond = self.number(1 << 8 * (DType.i32.itemsize - dtype.itemsize), DType.i32)
        return self.same("Div", self.same("Mul", ref, beyond), beyond)

    def rounded(self, ref: Ref, dtype: DType) -> Ref:
        """A value computed in f32, rounded to the half type ``dtype`` that it stands for."""
        if computed(dtype) is dtype:
            return ref
        if dtype in self.target.cuts:
            return ref if self._is_half(ref, dtype) else self._nearest(ref, dtype, may_be_nan=True)
        return self.op("Cast", self.cast(ref, dtype), dtype=DType.f32, to=ONNX_DTYPES[DType.f32])

    def _is_half(self, ref: Ref, dtype: DType) -> bool:
        """Whether a tensor in f32 is one of a half type, widened or rounded."""
        half = self._halves.get(ref.name)
        return (half is not None and half.dtype is dtype) or self._rounded.get(ref.name) is dtype

    def _nearest(self, ref: Ref, dtype: DType, *, may_be_nan: bool) -> Ref:
        near = _nearest(self, ref, may_be_nan=may_be_nan)
        self._rounded[near.name] = dtype
        return near

    def symbol(self, name: str) -> Ref:
        """The value of a symbol of the IR, as a 1-D tensor of one element."""
        return self._symbol(name)

    def dim(self, dim: Dim) -> Ref:
        """The value of a dimension, as a 1-D tensor of one element."""
        if isinstance(dim, int):
            return self.ints(dim)
        from fairlead_onnx._dims import write_dim

        return write_dim(self, dim)

    def shape(self, dims: Sequence[Dim]) -> Ref:
        """A 1-D tensor of dimensions."""
        if all(isinstance(d, int) for d in dims):
            return self.ints(*(d for d in dims if isinstance(d, int)))
        if len(dims) == 1:
            return self.dim(dims[0])
        return self.op("Concat", *map(self.dim, dims), axis=0)

    def reshape(self, ref: Ref, dims: Sequence[Dim]) -> Ref:
        """The elements in another shape; one symbolic dimension is left to the runtime to infer."""
        symbolic = [d for d in dims if not isinstance(d, int)]
        if len(symbolic) == 1 and 0 not in dims:
            return self.op("Reshape", ref, self.ints(*(d if isinstance(d, int) else -1 for d in dims)))
        if symbolic:
            return self.op("Reshape", ref, self.shape(dims))
        if 0 in dims:
            return self.op("Reshape", ref, self.shape(dims), allowzero=1)
        return self.op("Reshape", ref, self.shape(dims))

    def scalar(self, ref: Ref) -> Ref:
        """A tensor of one element as a 0-d tensor."""
        return self.op("Reshape", ref, self.ints())

    def rename(self, ref: Ref, name: str) -> Ref:
        """The same tensor under another name; of a constant a copy, since OpenVINO fills one output of each."""
        constant = self._constant(ref)
        if constant is not None:
            ref = Ref(self._name(), ref.dtype)
            self.constants[ref.name] = constant._replace(name=ref.name)
        self.steps.append(Step("Identity", "", (ref.name,), (), (name,)))
        return Ref(name, ref.dtype)

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"


ONNX_DTYPES = {
    DType.f32: 1,
    DType.u8: 2,
    DType.i8: 3,
    DType.u16: 4,
    DType.i16: 5,
    DType.i32: 6,
    DType.i64: 7,
    DType.bool: 9,
    DType.f16: 10,
    DType.f64: 11,
    DType.u32: 12,
    DType.u64: 13,
    DType.bf16: 16,
}
"""The numbers by which ONNX calls the element types."""

_WORDS = frozenset({DType.i32, DType.i64})
_HELD_BY_F32 = 2**24

_WIDER: dict[DType, tuple[DType, ...]] = {
    DType.bool: (DType.i32, DType.i64),
    DType.u8: (DType.i32, DType.i64),
    DType.i8: (DType.i32, DType.i64),
    DType.i16: (DType.i32, DType.i64),
    DType.i32: (DType.i64,),
}


_UNSIGNED = frozenset({"Abs", "Exp", "Sigmoid", "Softmax"})
"""Ops whose results have no -0."""


_MANY = 2.0**64
"""From here on a number is scaled down, so that nothing of `_nearest` overflows."""


def _nearest(w: Writer, x: Ref, *, may_be_nan: bool) -> Ref:
    """A tensor of f32, rounded to the nearest of bfloat16 and to the even one of two: ``(x + m) - m``.

    The last bit of ``m``, which is one and a half powers of two, is the last that bfloat16 keeps of x. The unit in the
    first place of x, a power of two, is Algorithm 3.5 of Rump, Ogita and Oishi, Accurate Floating-Point Summation; the
    Max in it keeps compilers from fusing the product with the difference, which would not round it.
    """

    def number(value: float) -> Ref:
        return w.number(value, DType.f32)

    size = w.op("Max", x, w.same("Neg", x))
    many = w.same("Less", number(_MANY), size, result=DType.bool)
    scale, back = w.select(many, number(1 / _MANY), number(1.0)), w.select(many, number(_MANY), number(1.0))
    large = w.same("Mul", w.same("Mul", size, scale), number(2.0**23 + 1))
    less = w.op("Max", w.same("Mul", large, number(1 - 2.0**-24)), number(0.0))
    unit = w.op("Max", w.same("Sub", large, less), number(2.0**-126))
    m = w.same("Mul", unit, number(1.5 * 2**16))
    near = w.same("Mul", w.same("Sub", w.same("Add", w.same("Mul", x, scale), m), m), back)
    finite = w.same("LessOrEqual", size, number((2 - 2.0**-23) * 2.0**127), result=DType.bool)
    is_nonzero = w.same("Less", number(0.0), size, result=DType.bool)  # zero keeps its sign
    rest = w.select(w.op("IsNaN", x, dtype=DType.bool), number(math.nan), x) if may_be_nan else x
    return w.select(w.op("And", finite, is_nonzero), near, rest)


def _bits(value: Number) -> object:
    """A key that tells -0.0 from 0.0 and True from 1, and finds a NaN equal to itself."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    return type(value), value
