"""What the runtime that reads the ONNX model has and has not."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlead.ir import DType

__all__ = ["ARITHMETIC", "DOMAIN", "Target"]

DOMAIN = "fairlead"
"""Of the ops that ONNX has not, which who reads a model has to be taught."""

ARITHMETIC = frozenset({DType.f32, DType.f64, DType.i32, DType.i64})
"""The element types that an ONNX op of numbers is taken to have where a target says nothing else."""

COMPUTED = frozenset(
    {DType.bool, DType.u8, DType.i8, DType.i16, DType.i32, DType.i64, DType.f16, DType.bf16, DType.f32, DType.f64}
)
"""The element types that the rules know how to compute in; a runtime may have fewer."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime, as far as the rules have to know it.

    ``name`` stands in reasons. ``contrib``: it has the ops of ``com.microsoft``. ``dtypes``: element types that it
    stores and converts. ``kernels``: the element types that an ONNX op computes in, where they are not `ARITHMETIC`;
    other integers are widened to one of them, and halves are always computed in f32. ``declined``: ops of the IR that
    it is slow or wrong at, with the reason. ``drops_nan``: ONNX ops of one operand or of equals that make a number of
    a NaN. ``reduces_from_finite``: its reductions to an extremum start from the largest finite number, so that they
    miss an infinity. ``partial_rows``: in a row with a NaN or an infinity, its softmax makes NaN of some elements only.
    ``casts_truth``: its conversion to bool makes True of all integers but 0. ``where_drops_sign``: its Where makes 0 of
    a -0 of the operand that is taken where the condition holds. ``sums_serially``: it adds many terms one after the
    other. ``avoided``: ONNX ops that it gets wrong, or is slow at, and that are written in others, or otherwise.
    ``coarse``: ONNX ops whose results are lost where they are very small or very large. ``readable``: element types
    that it takes as inputs only, to convert them at once. ``cuts``: half types to which its conversion drops digits, or
    makes a number of a NaN, where torch rounds: their rounding is written in f32.
    ``widened``: integer types that it stores in 32 bits within a model: a conversion to them does not wrap there.
    ``complete``: it has no kernel but those of ``kernels``, and conversions. ``unchecked``: it goes on where an index
    is out of range: the model has one more result, which says whether none was. ``wraps``: it goes on where an index is
    below 0, counted from the end: that result says so where torch would refuse it. ``pools``: it has an op that adds up
    rows of a table, which is written as EmbeddingBag of `DOMAIN`, of a table and the places of each bag's rows.
    ``most_joined``: so many tensors its Concat takes at most; 0 is any number. ``most_added``: so many numbers it
    combines with what is at computed places before torch is faster; 0 is any number.
    ``contends``: its products read rows of the first operand in place, several in one step, and rows that lie a
    multiple of so many bytes apart contend for one set of the cache: they are made longer; 0 is none.
    ``saturates``: it adds two products of an unsigned and a signed byte in 16 bits, which are too few: signed bytes
    that stand for quantised numbers are written as unsigned ones.
    """

    name: str
    opset: int = 20
    contrib: bool = False
    dtypes: frozenset[DType] = COMPUTED
    kernels: Mapping[str, frozenset[DType]] = {}
    declined: Mapping[str, str] = {}
    drops_nan: frozenset[str] = frozenset()
    reduces_from_finite: bool = False
    partial_rows: bool = False
    casts_truth: bool = True
    avoided: frozenset[str] = frozenset()
    where_drops_sign: bool = False
    sums_serially: bool = False
    coarse: frozenset[str] = frozenset()
    readable: frozenset[DType] = frozenset()
    cuts: frozenset[DType] = frozenset()
    widened: frozenset[DType] = frozenset()
    saturates: bool = False
    complete: bool = False
    unchecked: bool = False
    wraps: bool = False
    pools: bool = False
    contends: int = 0
    most_joined: int = 0
    most_added: int = 0
