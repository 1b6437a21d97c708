"""Computing in float64 what was written for narrower types, and moving what is computed from by a rounding."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["Widened", "in_float64", "moved", "wide"]


class Widened(TorchFunctionMode):
    """Makes every request for a narrower type one for float64: models ask for float32 in norms and rotations."""

    NARROW = (torch.float32, torch.float16, torch.bfloat16)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        if func in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            func = torch.Tensor.double
        keywords = {key: self._wide(value) for key, value in (kwargs or {}).items()}
        return func(*map(self._wide, args), **keywords)

    def _wide(self, value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in self.NARROW else value


@contextlib.contextmanager
def in_float64() -> Iterator[None]:
    """Within, what is computed of float64 is computed in float64, whatever narrower types it asks for on the way.

    It sets the default type of the whole process meanwhile.
    """
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Widened():
            yield
    finally:
        torch.set_default_dtype(default)


def wide(value: Any) -> Any:
    """A floating-point tensor as one of float64, anything else as it is."""
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def moved(tensor: torch.Tensor, generator: torch.Generator, share: float | None = None) -> torch.Tensor:
    """The tensor with each element moved by at most this share of it, one rounding where none is given.

    One that is not floating point stays as it is.
    """
    if not tensor.is_floating_point():
        return tensor
    # Drawn on the CPU, where the generator is.
    signs = torch.randint(-1, 2, tensor.shape, generator=generator).to(tensor)
    return tensor * (1 + signs * (torch.finfo(tensor.dtype).eps if share is None else share))
