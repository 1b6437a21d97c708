"""Arguments and types as text: ``"f32[b, 3]"`` is a tensor, ``"<b + 1>"`` a size, ``"#f16"`` a dtype."""

from __future__ import annotations

import re
from typing import Any

from fairlead.ir import Argument, DimExpr, DType, ScalarType, TensorType, Token, Type, Value, dims, type_text
from fairlead.ir.infer import infer

_TENSOR = re.compile(r"([a-z0-9]+)\[([^]]*)\](?: @(\S+))?")


def typed(text: str) -> TensorType:
    """A type in the form in which types are shown."""
    found = _TENSOR.fullmatch(text)
    assert found is not None, text
    sizes = [part.strip() for part in found[2].split(",") if part.strip()]
    shape = tuple(int(s) if s.lstrip("-").isdigit() else dims.normalize(s) for s in sizes)
    return TensorType(DType(found[1]), shape, None, found[3] or "cpu")


def argument(given: Any) -> Argument:
    """What a test writes, as the IR has it."""
    match given:
        case str() if _TENSOR.fullmatch(given):
            return Value(0, typed(given))
        case str() if given.startswith("<"):
            return DimExpr(given[1:-1])
        case str() if given.startswith("#"):
            return Token("dtype", given[1:])
        case str() if given.startswith("@"):
            return Token("device", given[1:])
        case list():
            return tuple(map(argument, given))
        case TensorType() | ScalarType():
            return Value(0, given)
    return given  # type: ignore[no-any-return]


def shown(types: tuple[Type | None, ...]) -> str:
    """Types as text, with `_` for none."""
    return ", ".join("_" if t is None else type_text(t) for t in types)


def inferred(op: str, *args: Any) -> str:
    """What the rule of an op makes of arguments, as text."""
    return shown(infer(op, tuple(map(argument, args))))
