"""Ops of which Inductor generates code that is not exact, in terms of others of which it does.

Its vectors on CPUs subtract 1 from exp(x) for expm1(x), and for what is made of it: 0 where x is 1e-10.
"""

from __future__ import annotations

import torch

__all__ = ["exact"]

_aten = torch.ops.aten


def exact(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The module, changed in place where an op is not exact on CPUs."""
    for node in module.graph.nodes:
        if node.op == "call_function":
            node.target = _EXACT.get(node.target, node.target)
    module.recompile()
    return module


def _expm1(x: torch.Tensor) -> torch.Tensor:
    if x.device.type != "cpu" or x.is_complex():
        return torch.expm1(x)
    return _near_zero(_wide(x)).to(x.dtype if x.is_floating_point() else torch.get_default_dtype())


def _elu(x: torch.Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> torch.Tensor:
    if x.device.type != "cpu":
        plain: torch.Tensor = _aten.elu.default(x, alpha, scale, input_scale)
        return plain
    wide = _wide(x)
    return torch.where(wide > 0, wide * scale, _near_zero(wide * input_scale) * (alpha * scale)).to(x.dtype)


def _celu(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    return _elu(x, alpha, 1.0, 1.0 / alpha)


def _selu(x: torch.Tensor) -> torch.Tensor:
    return _elu(x, 1.6732632423543772, 1.0507009873554805)  # as in aten/src/ATen/native/Activation.cpp


def _near_zero(x: torch.Tensor) -> torch.Tensor:
    """expm1(x), from the identity expm1(x) = tanh(x/2) (exp(x) + 1), where nothing cancels."""
    return torch.tanh(x / 2) * (torch.exp(x) + 1)


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


_EXACT = {
    _aten.expm1.default: _expm1,
    _aten.elu.default: _elu,
    _aten.celu.default: _celu,
    _aten.selu.default: _selu,
}
