"""Decompositions of our own where torch's has other results than the kernel: at NaN, beyond a range, of one dimension.

The kernels are those of vectors on a CPU (aten/src/ATen/native/cpu/Activation.cpp and BinaryOpsKernel.cpp). In eager
mode the gradients of activations let a NaN pass in the last few elements of a tensor there, which are computed one by
one, and on other devices everywhere, as torch's decompositions do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions

__all__ = ["EXACT"]

_aten = torch.ops.aten

_HALVES = torch.float16, torch.bfloat16
_MEAN = 1
"""How torch numbers the reduction of a loss."""


def _on_a_cpu(op: torch._ops.OpOverload) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """A rule of the gradient of an op on a CPU; other devices have torch's."""
    elsewhere = get_decompositions([op])[op]

    def enter(rule: Callable[..., Tensor]) -> Callable[..., Tensor]:
        here = _in_float32(rule)

        @functools.wraps(rule)
        def either(grad: Tensor, *args: Any) -> Tensor:
            found: Tensor = (here if grad.device.type == "cpu" else elsewhere)(grad, *args)
            return found

        return either

    return enter


def _in_float32(rule: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A rule of a gradient, which is computed in float32 where it is a half, as kernels do."""

    @functools.wraps(rule)
    def wide(grad: Tensor, *args: Any) -> Tensor:
        if grad.dtype not in _HALVES:
            return rule(grad, *args)
        given = (a.float() if isinstance(a, Tensor) and a.dtype in _HALVES else a for a in args)
        return rule(grad.float(), *given).to(grad.dtype)

    return wide


@_on_a_cpu(_aten.elu_backward.default)
def _elu_backward(
    grad: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Tensor
) -> Tensor:
    x, slope = self_or_result, alpha * scale
    below = x + slope if is_result else slope * torch.exp(x * input_scale)
    return torch.where(x > 0, grad * scale, grad * input_scale * below)


@_on_a_cpu(_aten.hardswish_backward.default)
def _hardswish_backward(grad: Tensor, x: Tensor) -> Tensor:
    return torch.where(x <= -3, 0.0, torch.where(x >= 3, grad, grad * (x / 3 + 0.5)))


@_on_a_cpu(_aten.hardtanh_backward.default)
def _hardtanh_backward(grad: Tensor, x: Tensor, least: float, most: float) -> Tensor:
    return torch.where((x > least) & (x < most), grad, 0.0)


@_in_float32
def _smooth_l1_loss_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    share = grad / x.numel() if reduction == _MEAN else grad
    off = x - target
    return torch.where(off.abs() >= beta, share * torch.sign(off), share * off / beta)


def _ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    """``x`` times 2 to the power of ``exponent``, rounded once where that is an integer, as by C's function.

    The power of an integer alone may be out of range where the result is not: it comes in three factors that are not,
    the last of which is the one that rounds. Torch's decomposition has one, and float32 for an integer times a half.
    """
    if not x.is_floating_point() or exponent.is_floating_point() or exponent.is_complex():
        return x * torch.pow(2.0, exponent)
    dtype = torch.result_type(x, exponent)
    wide = torch.float32 if dtype in _HALVES else dtype
    most = 1022 if wide is torch.float64 else 126
    left = exponent.to(torch.int64).clamp(-3 * most, 3 * most)
    last = left.clamp(-most, most)
    left = left - last
    middle = left.clamp(-most, most)
    found = x.to(wide)
    for power in (left - middle, middle, last):
        found = found * torch.pow(2.0, power.to(wide))
    return found.to(dtype)


_OF_MATRICES = get_decompositions([_aten._weight_norm_interface])[_aten._weight_norm_interface.default]


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Of a vector each element has a norm of its own; torch's decomposition takes that of the whole vector."""
    if v.dim() != 1:
        found: tuple[Tensor, Tensor] = _OF_MATRICES(v, g, dim)
        return found
    norm = v.abs().to(torch.float32 if g.dtype in _HALVES else v.dtype)
    return v * (g / norm.to(g.dtype)), norm


EXACT: dict[Any, Callable[..., Any]] = {
    _aten._weight_norm_interface.default: _weight_norm,
    _aten.elu_backward.default: _elu_backward,
    _aten.hardswish_backward.default: _hardswish_backward,
    _aten.hardtanh_backward.default: _hardtanh_backward,
    _aten.ldexp.Tensor: _ldexp,
    _aten.smooth_l1_loss_backward.default: _smooth_l1_loss_backward,
}
"""What AOTAutograd traces in place of each op."""
