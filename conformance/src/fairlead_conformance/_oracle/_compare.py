"""One result beside what it ought to be."""

from __future__ import annotations

from typing import NamedTuple

import torch

from fairlead_conformance._oracle._distribution import same_distribution
from fairlead_conformance._oracle._reference import Expected

__all__ = ["Comparison", "compare"]


class Comparison(NamedTuple):
    """How many elements were compared, and what is wrong, as a sentence; nothing is where it is empty."""

    compared: int
    problem: str


def compare(
    got: torch.Tensor, expected: Expected, *, signed_zeros: bool = True, also: torch.Tensor | None = None
) -> Comparison:
    """Compare the values; dtype and shape are known to be right.

    ``signed_zeros``: whether -0 and 0 differ where bits are compared. Ops that pick one of two equal numbers, such as
    a maximum, may pick either. ``also``: elements that are right for another reason, as one of several right answers.
    """
    if expected.drawn:
        return Comparison(got.numel(), same_distribution(got, expected.eager))
    if not got.numel():
        return Comparison(1, "")  # That a result is empty is all there is to know of it.
    if expected.exact is None or expected.bound is None:
        right = _same_bits(got, expected.eager, signed_zeros)
    else:
        right = _near(got, expected, expected.exact, expected.bound)
    if also is not None:
        right |= also
    if expected.flushed is not None:
        right |= _as_flushed(got, expected.flushed, expected.bound)
    if expected.free is None:
        return Comparison(got.numel(), _problem(got, expected, right))
    return Comparison(got.numel() - int(expected.free.sum()), _problem(got, expected, right | expected.free))


def _same_bits(got: torch.Tensor, eager: torch.Tensor, signed_zeros: bool) -> torch.Tensor:
    """Whether elements are equal; all NaNs are, and 0 and -0 unless their signs count."""
    if got.is_complex():
        parts = _same_bits(
            torch.view_as_real(got.resolve_conj()), torch.view_as_real(eager.resolve_conj()), signed_zeros
        )
        return parts.all(-1)
    if got.dtype.is_floating_point and got.dtype.itemsize == 1:  # few ops know them
        got, eager = got.float(), eager.float()
    same = got == eager
    if not got.is_floating_point():
        return same
    if signed_zeros:
        same &= torch.signbit(got) == torch.signbit(eager)
    return same | (got.isnan() & eager.isnan())


def _near(got: torch.Tensor, expected: Expected, exact: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    """Near the exact result or near eager's; what is infinite or not a number in one of them may be so here."""
    wide, eager = got.to(exact.dtype), expected.eager.to(exact.dtype)
    measured = exact.isfinite() | bound.isfinite()  # all numbers are within infinity of an infinite result
    right = (((wide - exact).abs() <= bound) | ((wide - eager).abs() <= bound)) & measured
    right |= (wide == exact) | (wide == eager)
    right |= wide.isnan() & (eager.isnan() | exact.isnan())
    if got.is_complex():
        return right | ~(wide.isfinite() | measured)
    largest = torch.finfo(got.dtype).max
    return right | (wide.isinf() & (wide.sign() == exact.sign()) & (exact.abs() + bound > largest))


def _as_flushed(got: torch.Tensor, flushed: torch.Tensor, bound: torch.Tensor | None) -> torch.Tensor:
    if bound is None:
        return got == flushed
    wide = got.to(torch.complex128 if got.is_complex() else torch.float64)
    return (wide == flushed) | (((wide - flushed).abs() <= bound) & bound.isfinite())


def _problem(got: torch.Tensor, expected: Expected, right: torch.Tensor) -> str:
    wrong = int((~right).sum())
    if not wrong:
        return ""
    first = tuple((~right).nonzero()[0].tolist())
    wanted = (expected.eager if expected.exact is None else expected.exact)[first].item()
    problem = f"{wrong} of {got.numel()} elements are wrong: {got[first].item()} and not {wanted} at {list(first)}"
    if expected.bound is None:
        return problem
    return (
        f"{problem}, where {float(expected.bound[first]):.1e} is allowed and eager has {expected.eager[first].item()}"
    )
