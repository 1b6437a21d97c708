"""What a torch operator takes, and whether the IR has a word for it: read once from its schema."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch


class Operator(NamedTuple):
    """The name in the IR, name and default of each parameter, and the positions of parameters that are dtypes.

    ``refusal`` says why no node of it can be captured; empty where nothing stands against it.
    """

    name: str
    parameters: tuple[tuple[str, Any], ...]
    dtypes: tuple[int, ...]
    refusal: str


@functools.cache
def operator_of(op: torch._ops.OpOverload) -> Operator:
    """What capture knows of a torch operator."""
    parameters = op._schema.arguments
    return Operator(
        str(op),
        tuple((p.name, p.default_value) for p in parameters),
        tuple(position for position, p in enumerate(parameters) if p.name == "dtype"),
        _refusal(op),
    )


def _refusal(op: torch._ops.OpOverload) -> str:
    if op._schema.is_mutable:
        return f"the in-place operator {op}"
    if op is torch.ops.aten._assert_scalar.default:
        return "a check of a number that is known only after data has been computed"
    if not op._schema.returns:
        return f"the operator {op}, which has an effect but no result"
    return ""


def arguments_in_order(op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """One argument for each parameter of the op, defaults filled in."""
    rest = operator_of(op).parameters[len(args) :]
    return [*args, *(kwargs.get(name, default) for name, default in rest)]
