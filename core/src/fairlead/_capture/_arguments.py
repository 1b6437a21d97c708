"""The arguments of a call in the order of its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch


def arguments_in_order(op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """One argument for each parameter of the op, defaults filled in."""
    out = []
    for position, parameter in enumerate(op._schema.arguments):
        if position < len(args):
            out.append(args[position])
        else:
            out.append(kwargs.get(parameter.name, parameter.default_value))
    return out
