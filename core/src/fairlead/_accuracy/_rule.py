"""Is a result right? Its errors against float64 beside those that eager itself makes.

A floating-point tensor is right when its error is at most `ALLOWANCE` times eager's own, or below its type's `FLOOR`:
another order of summation stays within that, a lower precision inside (bfloat16 for float32, say) does not. Eager's own
is the worst of eager as it is and of eager with weights and inputs moved by one rounding. Everything else has to be
equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import torch

from fairlead.backend import Precision

__all__ = ["ALLOWANCE", "FLOOR", "GRADIENT", "Bar", "Case", "Findings", "Tensors", "bar"]

Tensors: TypeAlias = dict[str, torch.Tensor]

GRADIENT = "gradient of "
"""How the names of gradients begin."""

ALLOWANCE = 8.0
"""How many times eager's own error is still right."""

FLOOR = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}
"""The error below which a tensor of this type is right whatever eager's is: 84 roundings of float32, 5 of others."""

_SHORT = {"high": torch.float16, "medium": torch.bfloat16}
"""The type that has the bits in which a precision lets products of float32 be computed."""

_MEAN, _VARIANCE = "running_mean", "running_var"

SMALLEST_GRADIENT = 1e-2
"""Of the largest gradient: some parameters have a true gradient of zero, and rounding relative to zero means nothing.
"""


@dataclass(frozen=True)
class Case:
    """One set of inputs and what comes of it. ``exact`` is None where the model does not run in float64.

    ``shaken``: how far each floating-point tensor moves when weights and inputs are moved by one rounding. A model that
    makes much of that makes much of anyone's rounding.
    """

    inputs: Tensors
    eager: Tensors
    exact: Tensors | None
    shaken: dict[str, float] = field(default_factory=dict)


@dataclass
class Findings:
    """What has been compared so far, and every problem, as a sentence.

    ``floor``: an error below which every tensor is right; each type has one of its own besides.
    """

    floor: float = 0.0

    cases: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    error: float = 0.0
    eager: float = 0.0
    worst: str = ""
    tensors: int = 0
    exact: bool = True

    def add(self, label: str, case: Case, got: Tensors, *, is_counted: bool = True) -> None:
        """Compare the result of one case; where it is not counted, what equals eager bit for bit is passed over."""
        self.cases.append(label)
        self.exact = self.exact and case.exact is not None
        for name in case.eager.keys() - got.keys():
            self.problems.append(f"{label}: there is no {name}")
        for name in got.keys() - case.eager.keys():
            self.problems.append(f"{label}: there is a {name}, which eager does not have")
        least = _least_scales(case)
        for name in case.eager.keys() & got.keys():
            if not is_counted and _is_same(got[name], case.eager[name]):
                continue
            self.tensors += 1
            exact = (case.exact or case.eager)[name]
            shaken, scale = case.shaken.get(name, 0.0), least.get(name, 0.0)
            if problem := self._compare(name, got[name].detach(), case.eager[name], exact, shaken, scale):
                self.problems.append(f"{label}: {problem}")

    def _compare(
        self, name: str, got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, shaken: float, least: float
    ) -> str:
        if got.dtype != eager.dtype or got.shape != eager.shape:
            return f"{name} is {_type(got)}, in eager {_type(eager)}"
        if not (eager.is_floating_point() or eager.is_complex()):
            differing = int((got != eager).sum())
            return f"{differing} of {eager.numel()} elements of {name} differ" if differing else ""
        finite = torch.isfinite(eager)
        if not _same_specials(got, eager, finite):
            return f"{name} has other infinities or NaNs than eager"
        scale, own, allowed = bar(eager, exact, shaken, least)
        allowed = max(allowed, self.floor)
        error = _distance(*_finite(got, exact, eager)) / scale
        self.eager = max(self.eager, own)
        if error >= self.error:
            self.error, self.worst = error, name
        return f"{name} is off by {error:.1e}, eager by {own:.1e}, {allowed:.1e} is allowed" if error > allowed else ""


def floor_of(precision: Precision) -> float:
    """The error below which a tensor is right that is computed with this precision, whatever its type is."""
    return FLOOR[_SHORT[precision]] if precision in _SHORT else 0.0


class Bar(NamedTuple):
    """What a result is measured by: its scale, and relative to that eager's own error and the one that is allowed."""

    scale: float
    own: float
    allowed: float


def bar(eager: torch.Tensor, exact: torch.Tensor, shaken: float, least: float = 0.0) -> Bar:
    """The bar of a tensor of floating-point or complex numbers; ``least`` is the smallest scale that it may have."""
    eager_finite, exact_finite = _finite(eager, exact, eager)
    scale = max(_largest(exact_finite), least) or 1.0
    own = max(_distance(eager_finite, exact_finite), shaken) / scale
    return Bar(scale, own, max(ALLOWANCE * own, FLOOR.get(eager.dtype, FLOOR[torch.float32])))


def _is_same(got: torch.Tensor, eager: torch.Tensor) -> bool:
    return got.dtype == eager.dtype and torch.equal(got, eager)


def _finite(tensor: torch.Tensor, exact: torch.Tensor, eager: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both tensors where eager and the exact one are finite; picking elements costs far more than all of them."""
    finite = torch.isfinite(eager) & torch.isfinite(exact)
    return (tensor, exact) if finite.all() else (tensor[finite], exact[finite])


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0


def _distance(tensor: torch.Tensor, exact: torch.Tensor) -> float:
    wide = torch.complex128 if exact.is_complex() else torch.float64
    return _largest(tensor.to(wide) - exact.to(wide))


def _same_specials(got: torch.Tensor, eager: torch.Tensor, finite: torch.Tensor) -> bool:
    if not torch.equal(torch.isfinite(got), finite):
        return False
    return bool(finite.all()) or torch.equal(
        torch.nan_to_num(got[~finite], nan=0.5), torch.nan_to_num(eager[~finite], nan=0.5)
    )


def _least_scales(case: Case) -> dict[str, float]:
    """The smallest scale of each gradient, and of each running mean; nothing else has one.

    What else a backward gives are masks and indices. A running mean may be zero but for rounding, and is what a norm
    takes from numbers before it divides them by the root of the running variance.
    """
    tensors = case.exact or case.eager
    gradients = {n for n, t in tensors.items() if n.startswith(GRADIENT) and (t.is_floating_point() or t.is_complex())}
    largest = max((_largest(tensors[n]) for n in gradients), default=0.0)
    variances = {n: tensors.get(f"{n.removesuffix(_MEAN)}{_VARIANCE}") for n in tensors if n.endswith(_MEAN)}
    roots = {n: _largest(variance) ** 0.5 for n, variance in variances.items() if variance is not None}
    return dict.fromkeys(gradients, SMALLEST_GRADIENT * largest) | roots


def _type(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
