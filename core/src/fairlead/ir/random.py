"""Tensors from a random specification: a graph travels without its tensors, and still computes the same everywhere.

Word ``i`` of tensor ``t`` under seed ``s`` is ``mix(mix(s + (t + 1)*G) + (i + 1)*G)`` in 64-bit unsigned arithmetic,
where ``G = 0x9E3779B97F4A7C15`` and ``mix`` is the output function of SplitMix64 (Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", 2014). An element takes one word ``z``; a complex one takes two, the real
part first:

- uniform: ``low + (high - low) * ((z >> 11) * 2**-53)``
- normal: ``mean + std * (q - 131070) / D``, where ``q`` is the sum of the word's four 16-bit parts and ``D`` their
  standard deviation: a bell curve without tails beyond 3.5 deviations, and without a logarithm that rounds differently
  elsewhere
- integers: ``low + z % (high - low + 1)``; for an 8-bit float that is the bit pattern of the magnitude, and the top bit
  of ``z`` its sign

in float64, cut off at the largest finite number of the element type and rounded to it, to nearest, ties to even (bf16
by way of f32).

>>> draw(Integers(-2, 2), seed=0, stream=0, dtype=DType.i8, shape=(8,)).data.cast("b").tolist()
[-2, 2, -1, 1, 1, 1, -2, 1]
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from fairlead.ir._tensors import TensorData
from fairlead.ir._types import DType

__all__ = ["Distribution", "Integers", "Normal", "Uniform", "describe", "draw", "fits"]

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_DEVIATION = math.sqrt((2.0**32 - 1) / 3)
_FAR = 1e100  # beyond it the formulas could overflow
_BLOCK = 1 << 20
_SAMPLES = 4096
_CODES = {
    DType.bool: "B", DType.u8: "B", DType.i8: "b", DType.u16: "H", DType.i16: "h", DType.u32: "I", DType.i32: "i",
    DType.u64: "Q", DType.i64: "q", DType.f16: "e", DType.f32: "f", DType.f64: "d", DType.c64: "f", DType.c128: "d",
    DType.bf16: "H", DType.f8e4m3fn: "B", DType.f8e5m2: "B",
}  # fmt: skip
_LARGEST = {DType.f16: 65504.0, DType.bf16: 3.3895313892515355e38, DType.f32: 3.4028234663852886e38}
_LARGEST[DType.c64] = _LARGEST[DType.f32]
_LARGEST[DType.f64] = _LARGEST[DType.c128] = 1.7976931348623157e308
_ONE_IN_8_BITS = {DType.f8e4m3fn: 0x38, DType.f8e5m2: 0x3C}


class Normal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="normal", tag_field="kind"):
    """A bell curve."""

    mean: float
    std: float


class Uniform(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="uniform", tag_field="kind"):
    """Real numbers from ``low`` up to ``high``."""

    low: float
    high: float


class Integers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="integers", tag_field="kind"):
    """Integers from ``low`` to ``high``, both included."""

    low: int
    high: int


Distribution: TypeAlias = Normal | Uniform | Integers


def fits(distribution: Distribution, dtype: DType) -> bool:
    """Whether a tensor of this element type can be drawn from the distribution."""
    match distribution:
        case Normal(mean=mean, std=std):
            return dtype in _LARGEST and abs(mean) <= _FAR and 0 <= std <= _FAR
        case Uniform(low=low, high=high):
            return dtype in _LARGEST and -_FAR <= low <= high <= _FAR
    lowest, highest = _range(dtype)
    return lowest <= distribution.low <= distribution.high <= highest and distribution.high - distribution.low < 2**63


def describe(tensor: TensorData) -> Distribution:
    """A distribution that resembles the tensor, from at most a few thousand of its elements.

    Integers stay in the range that occurs, so that indices stay valid; what is never negative stays so, as variances
    must.
    """
    dtype = tensor.dtype
    if dtype in _ONE_IN_8_BITS:
        return Integers(0, _ONE_IN_8_BITS[dtype])
    sample = _sample(tensor)
    if dtype not in _LARGEST:
        low = min(sample, default=0)
        return Integers(low, min(max(sample, default=0), low + 2**63 - 1))
    finite = [x for x in sample if abs(x) <= _FAR] or [0.0]
    if min(finite) >= 0:
        return Uniform(min(finite), max(finite))
    mean = math.fsum(finite) / len(finite)
    return Normal(mean, math.sqrt(math.fsum((x - mean) ** 2 for x in finite) / len(finite)))


def draw(distribution: Distribution, seed: int, stream: int, dtype: DType, shape: tuple[int, ...]) -> TensorData:
    """A tensor drawn from a distribution that `fits`: the same bytes everywhere, and fast where NumPy is installed."""
    key = _mix((seed + (stream + 1) * _GOLDEN) & _MASK)
    count = math.prod(shape) * (2 if dtype.is_complex else 1)
    data = bytearray()
    for start in range(0, count, _BLOCK):
        positions = _Block.count(start + 1, min(start + _BLOCK, count) + 1)
        block = positions.each(lambda i: _mix((i * _GOLDEN + key) & _MASK))
        data += _encode(block.each(_formula(distribution, dtype)), distribution, dtype)
    return TensorData(dtype, shape, memoryview(data))


class _Block:
    """A run of numbers, as a NumPy array or as a list; `each` applies one formula to all of them in either."""

    def __init__(self, numpy: Any, numbers: Any) -> None:
        self.numpy = numpy
        self.numbers = numbers

    @classmethod
    def count(cls, start: int, stop: int) -> _Block:
        numpy = _numpy()
        return cls(numpy, numpy.arange(start, stop, dtype=numpy.uint64) if numpy else range(start, stop))

    def each(self, formula: Callable[[Any], Any]) -> _Block:
        return _Block(self.numpy, formula(self.numbers) if self.numpy else [formula(x) for x in self.numbers])

    def pack(self, code: str) -> bytes:
        if self.numpy:
            return bytes(self.numbers.astype(f"<{code}").tobytes())
        return struct.pack(f"<{len(self.numbers)}{code}", *self.numbers)


def _mix(z: Any) -> Any:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def _formula(distribution: Distribution, dtype: DType) -> Callable[[Any], Any]:
    match distribution:
        case Uniform(low=low, high=high):
            return lambda z: low + (high - low) * ((z >> 11) * 2.0**-53)
        case Normal(mean=mean, std=std):
            return lambda z: mean + std * ((_quarters(z) - 131070.0) / _DEVIATION)
    span, offset = distribution.high - distribution.low + 1, distribution.low
    if dtype in _ONE_IN_8_BITS:
        return lambda z: ((z >> 63) << 7) | (offset + z % span)
    bits = 2 ** (8 * dtype.itemsize) - 1
    return lambda z: (z % span + (offset & _MASK)) & _MASK & bits


def _quarters(z: Any) -> Any:
    return (z & 0xFFFF) + ((z >> 16) & 0xFFFF) + ((z >> 32) & 0xFFFF) + (z >> 48)


def _encode(block: _Block, distribution: Distribution, dtype: DType) -> bytes:
    if isinstance(distribution, Integers):
        return block.pack(_CODES[dtype].upper())
    largest = _LARGEST[dtype]
    clip = block.numpy.clip if block.numpy else lambda x, low, high: max(low, min(x, high))
    cut = block.each(lambda x: clip(x, -largest, largest))
    if dtype is not DType.bf16:
        return cut.pack(_CODES[dtype])
    raw = cut.pack("f")
    words = block.numpy.frombuffer(raw, "<u4") if block.numpy else memoryview(raw).cast("I")
    return _Block(block.numpy, words).each(lambda u: (u + 0x7FFF + ((u >> 16) & 1)) >> 16).pack("H")


def _sample(tensor: TensorData) -> Sequence[Any]:
    """Evenly spaced elements as Python numbers; of complex ones the two parts."""
    size, count = tensor.dtype.itemsize, math.prod(tensor.shape)
    raw = b"".join(tensor.data[i * size : (i + 1) * size] for i in range(0, count, max(1, count // _SAMPLES)))
    if tensor.dtype is DType.bf16:
        raw = b"".join(b"\0\0" + raw[i : i + 2] for i in range(0, len(raw), 2))
    code = "f" if tensor.dtype is DType.bf16 else _CODES[tensor.dtype]
    return struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw)


def _range(dtype: DType) -> tuple[int, int]:
    bits = 8 * dtype.itemsize
    if dtype in _ONE_IN_8_BITS:
        return 0, _ONE_IN_8_BITS[dtype]
    if dtype is DType.bool:
        return 0, 1
    if dtype in _LARGEST:
        return 1, 0
    return (0, 2**bits - 1) if dtype.value[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy
