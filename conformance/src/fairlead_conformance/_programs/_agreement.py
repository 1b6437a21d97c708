"""Whether a tensor has eager's values: exactly where they are integers, within rounding of float64 otherwise."""

from __future__ import annotations

from collections.abc import Callable

import torch

from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._status import Status

__all__ = ["agree"]

_ROUNDINGS = {torch.float16: 4.0, torch.bfloat16: 4.0}
"""Roundings of the largest value that are nobody's fault, where it is not `_MANY`: long sums are of float32."""

_MANY = 16.0

_NO_DIGIT = 16
"""How many times as far off as eager, where no digit of eager's is right: what is left where all terms cancel, as in
the gradient of the bias of an attention's keys, is as large as the terms were rounded, added in whatever order."""


def agree(
    got: torch.Tensor,
    eager: torch.Tensor,
    exact: torch.Tensor | None,
    what: str,
    seen: Observation,
    status: Status = Status.FAIL_MISMATCH,
    spread: Callable[[], float] | None = None,
) -> None:
    """Raise `Failed` unless ``got`` is at most four times as far from ``exact`` as eager, and a few roundings.

    Where no digit of eager's is right, it is sixteen times. ``exact`` is eager's result in float64; without it eager
    itself is the truth. Integers and booleans are eager's. ``spread`` tells how far ``exact`` moves when all that it
    is computed from moves by a rounding: as far off as that eager may have been, had it not been lucky where terms
    cancel. It is asked only where values are further off than without it.
    """
    seen.compared += got.numel()
    got, eager = got.detach(), eager.detach()
    if not (got.is_floating_point() or got.is_complex()):
        if wrong := int((got != eager).sum()):
            raise Failed(status, "values", f"{what}: {wrong} of {got.numel()} values are not eager's")
        return
    wide = torch.complex128 if got.is_complex() else torch.float64
    truth = (eager if exact is None else exact.detach()).to(wide)
    error = torch.where(_same(got, eager), 0.0, (got.to(wide) - truth).abs())
    allowed = _allowed(eager, exact)
    if spread is not None and not bool((error <= allowed).all()):
        allowed = _allowed(eager, exact, spread())
    if wrong := int((~(error <= allowed)).sum()):
        worst = float(error.nan_to_num(float("inf")).max())
        detail = f"{what}: {wrong} of {got.numel()} values are off by up to {worst:.3g}; {allowed:.3g} is allowed"
        raise Failed(status, "values", detail)


def _allowed(eager: torch.Tensor, exact: torch.Tensor | None, spread: float = 0.0) -> float:
    roundings = _ROUNDINGS.get(eager.dtype, _MANY) * torch.finfo(eager.dtype).eps
    if exact is None:
        return 4 * roundings * _largest(eager)
    exact = exact.detach()
    own, largest = max(_largest(eager.to(exact.dtype) - exact), spread), _largest(exact)
    return (4 if own < largest else _NO_DIGIT) * own + roundings * largest


def _largest(tensor: torch.Tensor) -> float:
    finite = tensor[tensor.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0


def _same(got: torch.Tensor, eager: torch.Tensor) -> torch.Tensor:
    return (got == eager) | (got.isnan() & eager.isnan())
