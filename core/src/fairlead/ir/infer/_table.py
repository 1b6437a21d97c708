"""All rules, by op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from fairlead.ir._model import Argument, Symbol
from fairlead.ir._types import TensorType, Type
from fairlead.ir.infer import (
    _collective,
    _factories,
    _indexing,
    _linalg,
    _losses,
    _matmul,
    _norms,
    _pointwise,
    _reductions,
    _resampling,
    _sorting,
    _spatial,
    _spectral,
    _statistics,
    _views,
)
from fairlead.ir.infer._ranges import Ranges, decided, ranges_of
from fairlead.ir.infer._rule import Rule, applied

_FAMILIES = (
    _collective,
    _factories,
    _indexing,
    _linalg,
    _losses,
    _matmul,
    _norms,
    _pointwise,
    _reductions,
    _resampling,
    _sorting,
    _spatial,
    _spectral,
    _statistics,
    _views,
)

RULES: Mapping[str, Rule] = {op: rule for family in _FAMILIES for op, rule in family.RULES.items()}
"""The rule of each op that has one."""


def infer(op: str, args: tuple[Argument, ...], symbols: Iterable[Symbol] = ()) -> tuple[Type | None, ...]:
    """The types of an op's results from its arguments, one for each parameter of its signature, by rule.

    ``symbols`` are those of the graph: their ranges decide which part of a ``min`` or ``max`` counts. Others are taken
    to be not negative. A type has no strides: they are logical, row-major. A result is None where the op does not
    return it (an ``output_mask`` says so), and where its size depends on the data (``nonzero``, ``masked_select``,
    ...). An op without a rule has no results: ``()``. Raises `VerificationError` for arguments that the op cannot take.

    >>> from fairlead.ir import DType, TensorType, Value
    >>> x = Value(0, TensorType(DType.f32, ("b", 3)))
    >>> w = Value(1, TensorType(DType.f32, (3, 5)))
    >>> infer("aten.mm.default", (x, w))
    (TensorType(dtype=<DType.f32: 'f32'>, shape=('b', 5), strides=None, device='cpu'),)
    >>> infer("mine.op.default", (x,))
    ()
    """
    rule = RULES.get(op)
    if rule is None:
        return ()
    ranges = ranges_of(symbols)
    return tuple(_decided(t, ranges) if isinstance(t, TensorType) else t for t in applied(op, rule, args))


def _decided(type_: TensorType, ranges: Ranges) -> TensorType:
    if type_.is_static:
        return type_
    return msgspec.structs.replace(type_, shape=tuple(decided(d, ranges) for d in type_.shape))
