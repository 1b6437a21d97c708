"""Ops of which Inductor generates code that is not exact, in terms of others of which it does.

Its vectors on CPUs subtract 1 from exp(x) for expm1(x), and for what is made of it: 0 where x is 1e-10. Remainders and
quotients that are rounded down are made of the rounded quotient: of 0 and infinity the remainder is NaN. The inverse
hyperbolic tangent is the logarithm of a quotient near 1. A half beyond an integer of 8 or 16 bits is converted straight
to it, where ATen's kernels go through 32 bits. `any` and `all` of bytes are bool, and running statistics float32, where
torch has bytes and halves; statistics of halves are halves on CPUs, where torch has the dtype of the weights. A product
with the integer 0 is 0 to it, where NaN times 0 is NaN. What is added to a product of matrices with a factor, as weight
decay is to a gradient, is added without it. A place in a whole tensor counts in the order of its memory, where it fuses
what made the tensor. Each lane of a vector adds thousands of float32 numbers in a row: a million tenths come to 99,994.
On CUDA a factor of -0 is 0, the negative of 0 has no sign, and numbers that are nearly 0 are 0 under a root.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fairlead.ir import Node
from fairlead_inductor._additions import adding_rows
from fairlead_inductor._casts import is_rounded, rounded, to_copy, to_copy_of_rounded
from fairlead_inductor._on_cuda import EXACT_ON_CUDA, fmod

__all__ = ["exact"]

_aten = torch.ops.aten


def exact(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The module, changed in place where an op is not exact."""
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target in (_aten.mul, _aten.mul.Tensor) and _is_zero(node.args[1], node.meta.get("node")):
            node.target = _times_zero
        if node.target is _aten.add.Tensor and node.kwargs.get("alpha", 1) != 1 and any(map(_is_product, node.args)):
            node.target = _plus
        if node.target is _aten._to_copy.default and is_rounded(node.args[0]):
            node.target = to_copy_of_rounded
        node.target = _EXACT.get(node.target, node.target)
    module.recompile()
    return module


def _is_zero(arg: object, node: Node | None) -> bool:
    """Whether a factor of floating-point numbers is the number 0, -0, or the integer 0."""
    floating = node is not None and node.result.tensor.dtype.is_floating
    return floating and type(arg) in (int, float) and arg == 0


def _is_product(arg: object) -> bool:
    return isinstance(arg, torch.fx.Node) and arg.target in (_aten.mm, _aten.mm.default)


def _plus(x: torch.Tensor, y: torch.Tensor, *, alpha: float) -> torch.Tensor:
    return x + y * alpha


def _times_zero(x: torch.Tensor, zero: float) -> torch.Tensor:
    product = x * 0.0
    return _neg(product) if math.copysign(1.0, zero) < 0 else product


def _neg(x: torch.Tensor) -> torch.Tensor:
    if x.device.type == "cpu" or not x.is_floating_point():
        return torch.neg(x)
    return x * -1.0


def _rsqrt(x: torch.Tensor) -> torch.Tensor:
    if x.device.type == "cpu" or x.dtype is not torch.float32:
        return torch.rsqrt(x)
    tiny = x.abs() < 2.0**-126
    return torch.where(tiny, torch.rsqrt(x * 2.0**24) * 2.0**12, torch.rsqrt(x))


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


def _remainder(x: torch.Tensor | float, y: torch.Tensor | float) -> torch.Tensor:
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        plain: torch.Tensor = _aten.remainder(x, y)
        return plain
    rest, _ = _rest_and_quotient(*_both(x, y))
    return rest.to(dtype)


def _div(x: torch.Tensor | float, y: torch.Tensor | float, *, rounding_mode: str | None = None) -> torch.Tensor:
    dtype = torch.result_type(x, y)
    if rounding_mode == "trunc" and dtype in (torch.float16, torch.bfloat16):
        return torch.trunc(rounded(_aten.div(x, y)))
    if rounding_mode != "floor" or not dtype.is_floating_point:
        plain: torch.Tensor = _aten.div(x, y, rounding_mode=rounding_mode) if rounding_mode else _aten.div(x, y)
        return plain
    x, y = _both(x, y)
    _, quotient = _rest_and_quotient(x, y)
    whole = torch.floor(quotient)
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    exact = x / y
    whole = torch.where(quotient == 0, torch.copysign(torch.zeros_like(exact), exact), whole)
    return torch.where(y == 0, exact, whole).to(dtype)


def _both(x: torch.Tensor | float, y: torch.Tensor | float) -> tuple[torch.Tensor, torch.Tensor]:
    dtype = torch.promote_types(torch.result_type(x, y), torch.float32)
    like = next((v for v in (x, y) if isinstance(v, torch.Tensor)), torch.zeros(()))  # of two numbers it is the CPU's
    first, second = (v.to(dtype) if isinstance(v, torch.Tensor) else like.new_full((), v, dtype=dtype) for v in (x, y))
    return first, second


def _rest_and_quotient(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is left, with the sign of y, and how often y went into x; as in c10/util/generic_math.h."""
    rest = fmod(x, y)
    quotient = (x - rest) / y
    above = (rest != 0) & ((y < 0) != (rest < 0))
    return torch.where(above, rest + y, rest), torch.where(above, quotient - 1, quotient)


def _in_order(place: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """``place``, argmax or argmin of a whole tensor, counted in the order of its dimensions."""

    def run(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
        if dim is not None or x.dim() < 2:
            return place(x, dim, keepdim)
        found = place(x.reshape(-1), 0)
        return found.reshape([1] * x.dim()) if keepdim else found

    return run


def _atanh(x: torch.Tensor) -> torch.Tensor:
    if x.device.type != "cpu" or not x.is_floating_point():
        return torch.atanh(x)
    size = _wide(x).abs()
    return torch.copysign(torch.log1p(2 * size / (1 - size)) / 2, x).to(x.dtype)


def _as_bytes(test: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """``test``, with bytes for bytes."""

    def run(x: torch.Tensor, *args: Any) -> torch.Tensor:
        return test(x.bool(), *args).to(torch.uint8) if x.dtype is torch.uint8 else test(x, *args)

    return run


_LONG = 2**16
"""From how many terms on float32 sums are made of the sums of parts."""


def _in_parts(op: Callable[..., torch.Tensor], *, divides: bool = False) -> Callable[..., torch.Tensor]:
    """``op``, a sum or, where it ``divides``, a mean, in float32 as that of the sums of parts."""

    def run(
        x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        dims = _dims(x, dim)
        if not _is_long(x, dims, dtype):
            return op(x, dim, keepdim, dtype=dtype)
        out = x.to(torch.float32)
        for d in reversed(dims):
            out = _sum_of_sums(out, d)
        if divides:
            out = out / math.prod(x.shape[d] for d in dims)
        return out.reshape([1 if d in dims else n for d, n in enumerate(x.shape)]) if keepdim else out

    return run


def _dims(x: torch.Tensor, dim: Sequence[int] | None) -> list[int]:
    return sorted(d % x.dim() for d in dim or range(x.dim())) if x.dim() else []


def _is_long(x: torch.Tensor, dims: Sequence[int], dtype: torch.dtype | None) -> bool:
    sizes = [x.shape[d] for d in dims]
    known = all(type(n) is int for n in sizes)  # to compare a symbol is to guard on it
    return x.device.type == "cpu" and (dtype or x.dtype) is torch.float32 and known and math.prod(sizes) > _LONG


def _sum_of_sums(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The sum over one dimension, in parts where it is long: about as many as each has terms."""
    size = x.shape[dim]
    if size <= _LONG:
        return x.sum(dim)
    parts = math.isqrt(size)
    each = -(-size // parts)
    x = torch.nn.functional.pad(torch.movedim(x, dim, -1), (0, parts * each - size))
    return x.reshape(*x.shape[:-1], parts, each).sum(-1).sum(-1)


def _with_a_length_for_each(backward: Callable[..., torch.Tensor], rank: int) -> Callable[..., torch.Tensor]:
    """``backward`` of a pooling over ``rank`` dimensions, with lists as long as that, which Inductor asserts."""

    def run(
        grad: torch.Tensor, x: torch.Tensor, kernel: list[int], stride: list[int], padding: list[int], *rest: Any
    ) -> torch.Tensor:
        lists = (kernel, stride or kernel, padding)
        return backward(grad, x, *(each * rank if len(each) == 1 else each for each in lists), *rest)

    return run


def _with_statistics(norm: Callable[..., tuple[torch.Tensor, ...]]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """``norm``, whose last two results have the dtype of the running mean and variance that it is given."""

    def run(x: torch.Tensor, weight: Any, bias: Any, *rest: Any) -> tuple[torch.Tensor, ...]:
        *results, mean, variance = norm(x, weight, bias, *rest)
        return (*results, mean.to(rest[0].dtype), variance.to(rest[1].dtype))

    return run


def _of_halves_by_weights(norm: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """``norm``, with statistics of float32 where halves meet weights of float32 on a CPU, as they do under autocast.

    Inductor's have the dtype of what is normalized.
    """

    def run(x: torch.Tensor, *rest: Any) -> tuple[Any, ...]:
        is_mixed = any(isinstance(a, torch.Tensor) and a.dtype is not x.dtype for a in rest)
        if x.device.type != "cpu" or not is_mixed:
            return norm(x, *rest)
        normal, *statistics = norm(_wide(x), *rest)
        return (normal.to(x.dtype), *statistics)

    return run


def _near_zero(x: torch.Tensor) -> torch.Tensor:
    """expm1(x), from the identity expm1(x) = tanh(x/2) (exp(x) + 1), where nothing cancels."""
    return torch.tanh(x / 2) * (torch.exp(x) + 1)


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _in_its_dtype(loss: Callable[..., Any]) -> Callable[..., Any]:
    """``loss`` or its gradient, whose results have the dtype of its first operand; of halves on CUDA by float32."""

    def run(x: torch.Tensor, *rest: Any) -> Any:
        wide = x.device.type == "cuda" and x.dtype in (torch.float16, torch.bfloat16)
        given = (x, *rest)
        if wide:  # what Inductor computes in float32 it would leave so
            given = tuple(a.float() if isinstance(a, torch.Tensor) and a.dtype is x.dtype else a for a in given)
        results = loss(*given)
        return tuple(r.to(x.dtype) for r in results) if isinstance(results, tuple) else results.to(x.dtype)

    return run


_EXACT: dict[Any, Callable[..., Any]] = {  # an op as a whole where an operand is a number
    _aten.atanh.default: _atanh,
    _aten.argmax.default: _in_order(torch.argmax),
    _aten.argmin.default: _in_order(torch.argmin),
    _aten._to_copy.default: to_copy,
    _aten.expm1.default: _expm1,
    _aten.elu.default: _elu,
    _aten.celu.default: _celu,
    _aten.selu.default: _selu,
    _aten.remainder.Tensor: _remainder,
    _aten.remainder: _remainder,
    _aten.div.Tensor_mode: _div,
    _aten.div: _div,
    _aten.sum.dim_IntList: _in_parts(_aten.sum.dim_IntList),
    _aten.mean.dim: _in_parts(_aten.mean.dim, divides=True),
    _aten.neg.default: _neg,
    _aten.rsqrt.default: _rsqrt,
    **{test: _as_bytes(test) for op in (_aten.any, _aten.all) for test in (op.default, op.dim, op.dims)},
    _aten.avg_pool2d_backward.default: _with_a_length_for_each(_aten.avg_pool2d_backward.default, 2),
    _aten.avg_pool3d_backward.default: _with_a_length_for_each(_aten.avg_pool3d_backward.default, 3),
    **{
        loss: _in_its_dtype(loss)
        for op in (_aten.nll_loss_forward, _aten.nll_loss_backward, _aten.nll_loss2d_forward, _aten.nll_loss2d_backward)
        for loss in (op.default,)
    },
    **{
        norm: _of_halves_by_weights(norm)
        for norm in (
            _aten.native_layer_norm.default,
            _aten.native_group_norm.default,
            _aten._native_batch_norm_legit.no_stats,
            _aten._native_batch_norm_legit_no_training.default,
        )
    },
    **{
        norm: _with_statistics(_of_halves_by_weights(norm))
        for norm in (
            _aten._native_batch_norm_legit_functional.default,
            _aten._batch_norm_with_update_functional.default,
        )
    },
    **EXACT_ON_CUDA,
    _aten.index_put.default: adding_rows(EXACT_ON_CUDA[_aten.index_put.default]),
}
