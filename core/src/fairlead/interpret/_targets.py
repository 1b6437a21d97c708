"""What torch calls an op, and how."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from fairlead.errors import IRFormatError
from fairlead.ir import Argument, Complex, DimExpr

_TENSORS = ("Tensor", "Optional[Tensor]")
_OURS_AND_TORCHS = ("aten", "prims", "nn")


class Target(NamedTuple):
    """A function that computes an op.

    ``keywords`` has for each argument its keyword, or None where it is positional; ``written`` the positions of those
    that it writes to, ``tensors`` of those that are tensors; ``several`` is whether it returns a list of results.
    """

    function: Callable[..., Any]
    keywords: tuple[str | None, ...]
    several: bool
    written: tuple[int, ...] = ()
    tensors: tuple[int, ...] = ()

    def function_for(self, args: Sequence[Argument]) -> Callable[..., Any]:
        """The function for these arguments: torch picks the overload where a number stands in a tensor's place."""
        if any(isinstance(args[i], int | float | DimExpr | Complex) for i in self.tensors):
            return self.function.overloadpacket  # type: ignore[attr-defined, no-any-return]
        return self.function


@functools.cache
def torch_target(op: str) -> Target:
    """The operator that torch has by the name of an op; an `IRFormatError` where this release has none."""
    namespace, _, rest = op.partition(".")
    name, _, overload = rest.partition(".")
    try:
        found = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except AttributeError as error:
        raise IRFormatError(
            f"the op {op} does not exist here",
            where=f"torch {torch.__version__}",
            next="use a torch release that has it"
            if namespace in _OURS_AND_TORCHS
            else f"import the library that registers the operators of {namespace}",
        ) from error
    parameters, returns = found._schema.arguments, found._schema.returns
    written = tuple(i for i, p in enumerate(parameters) if p.alias_info is not None and p.alias_info.is_write)
    return Target(
        torch.ops.aten.reshape.default if op == "aten.view.default" else found,
        tuple(p.name if p.kwarg_only else None for p in parameters),
        len(returns) != 1 or str(returns[0].type) != "Tensor",
        written,
        tuple(i for i, p in enumerate(parameters) if str(p.type) in _TENSORS) if namespace == "aten" else (),
    )
