"""Casts, in terms of those of which Inductor generates code that converts as torch's kernels do."""

from __future__ import annotations

from typing import Any

import torch

from fairlead.ir import DType, Value

__all__ = ["is_rounded", "rounded", "to_copy", "to_copy_of_rounded"]

_to_copy = torch.ops.aten._to_copy.default

_NARROW = (torch.uint8, torch.int8, torch.int16, torch.uint16)


def to_copy(x: torch.Tensor, **to: Any) -> torch.Tensor:
    """``aten._to_copy``, through 32 bits where torch's kernels go through them to an integer of fewer.

    On CPUs those of halves do. On CUDA those to 16 bits do: beyond them the last 16 of 32 bits are right, and Triton
    has the nearest integer.
    """
    if x.device.type == "cpu":
        through_32 = to.get("dtype") in _NARROW and x.dtype in (torch.float16, torch.bfloat16)
    else:
        through_32 = to.get("dtype") is torch.int16 and x.is_floating_point()
    converted: torch.Tensor = _to_copy(x.to(torch.int32) if through_32 else x, **to)
    return converted


def rounded(x: torch.Tensor) -> torch.Tensor:
    """A tensor of 16 bits that is read with no more than those, by way of them: Inductor keeps all that it computed.

    Told to round between fused ops, it still takes two casts for one, up to torch 2.11. The exclusive or keeps the two
    views of bits from being taken for none.
    """
    return (x.view(torch.int16) ^ 0).view(x.dtype)


def to_copy_of_rounded(x: torch.Tensor, **to: Any) -> torch.Tensor:
    """`to_copy` of what a cast rounded."""
    return to_copy(rounded(x), **to)


def is_rounded(arg: object) -> bool:
    """Whether an argument of an FX node is what a cast to 16 bits made of a wider number.

    Nothing tells what one was made of that another backend inserted: a wider number, for all that is known.
    """
    if not isinstance(arg, torch.fx.Node) or arg.target not in (_to_copy, to_copy, to_copy_of_rounded):
        return False
    node = arg.meta.get("node")
    if node is None:
        return arg.kwargs.get("dtype") in (torch.float16, torch.bfloat16)
    given, to = node.args[0], node.result.tensor.dtype
    wider = isinstance(given, Value) and given.tensor.dtype.is_floating and given.tensor.dtype.itemsize > to.itemsize
    return wider and to in (DType.f16, DType.bf16)
