"""Products with known weights: packed once, with what follows computed within."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import fx

from fairlead import processor
from fairlead.ir import DType, TensorType
from fairlead_ipex._draft import Draft, op_of, type_of
from fairlead_ipex._dtypes import TORCH, computed_in, in_dtype
from fairlead_ipex._options import IpexOptions
from fairlead_ipex._post_ops import Chain, Chains
from fairlead_ipex._weight_only import Quantized, quantized

__all__ = ["LEAST_ROWS", "linear_by_convolution", "pack_products"]

_ops = torch.ops.mkldnn

LEAST_ROWS = 4
"""Fewer rows read each weight once: MKL multiplies a matrix and a vector as fast as it is packed, where it is at home.
On processors of others with AVX-512 oneDNN is the faster with any."""

_LEAST_ROWS_AVX2 = 2
"""The same of processors with AVX2 alone, where packed weights are read once and torch's own are not."""

_BEYOND_THE_CACHE = 2**19
"""So many weights do not stay in the second cache while rows go by: oneDNN's convolution reads them in better order
than its product of matrices and than MKL, with AVX2 alone."""

_MOST_ROWS_MKL = 512
"""With more rows the time that MKL needs to pack is little beside that of the product."""

_LEAST_WORK = {torch.float32: 4_000_000, torch.bfloat16: 16_000}
"""oneDNN's op takes longer to start than torch's own in float32; so many multiplications pay for that. In bfloat16
torch's own takes as long."""

_LEAST_WEIGHTS = 2**18
"""So many weights pay for it as well, of however few rows: torch's own product reads them more slowly."""


class _Product(NamedTuple):
    """``x @ weight.T + bias``: ``rows`` of x, None where that is known only at the call.

    It is computed in the dtype of the weight; what it is given and gives is of ``dtype``.
    """

    x: fx.Node
    weight: torch.Tensor
    bias: torch.Tensor | None
    dtype: DType
    rows: int | None

    @property
    def work(self) -> int:
        """The multiplications; of the fewest rows, where rows are unknown."""
        return (LEAST_ROWS * 16 if self.rows is None else self.rows) * self.weight.numel()


def pack_products(draft: Draft, options: IpexOptions, chain_of: Chains) -> None:
    """Before: a module of ATen's ops. After: those with known weights read packed ones, where that is faster."""
    for node in list(draft.graph.nodes):
        product = _product(draft, node)
        if product is None:
            continue
        small = None if options.weights == "same" else quantized(product.weight, options.weights)
        if small is not None:
            _in_few_bits(draft, node, product, small)
        elif product.rows is None or product.rows >= _least_rows(options):
            _pack(draft, node, _widened(product), options, chain_of)


def _least_rows(options: IpexOptions) -> int:
    """The fewest rows of which a product is packed."""
    if _has_avx2_alone():
        return _LEAST_ROWS_AVX2
    return LEAST_ROWS if processor.is_intel() or options.products == "mkl" else 1


def _pack(draft: Draft, node: fx.Node, product: _Product, options: IpexOptions, chain_of: Chains) -> None:
    given, computed = TORCH[product.dtype], product.weight.dtype
    if _convolution_is_faster(product, options):
        call, chain = _by_convolution, chain_of(node)
    elif _mkl_is_faster(product, options):
        call, chain = _by_mkl, Chain(node)
    elif product.work >= _LEAST_WORK[computed] or product.weight.numel() >= _LEAST_WEIGHTS:
        call, chain = _by_onednn, chain_of(node)
    else:
        return
    if chain.other is not None and computed is not given:
        chain = Chain(node)
    with draft.graph.inserting_before(chain.last):
        x = in_dtype(draft, product.x, given, computed)
        made = in_dtype(draft, call(draft, product._replace(x=x), chain), computed, given)
    _replace(chain.last, made)


def _widened(product: _Product) -> _Product:
    """The product in the dtype that it is computed in."""
    dtype = computed_in(product.dtype)
    bias = None if product.bias is None else product.bias.to(dtype)
    return product._replace(weight=product.weight.to(dtype), bias=bias)


def _product(draft: Draft, node: fx.Node) -> _Product | None:
    """What a node multiplies, where the weights are known."""
    match op_of(node):
        case "aten.linear.default":
            x, weight, bias = node.args
            w = draft.value(weight)
        case "aten.mm.default":
            (x, weight), bias = node.args, None
            w = _turned(draft.value(weight))
        case "aten.addmm.default" if node.kwargs.get("beta", 1) == 1 and node.kwargs.get("alpha", 1) == 1:
            bias, x, weight = node.args
            w = _turned(draft.value(weight))
        case _:
            return None
    b, given = draft.value(bias), type_of(x)
    if w is None or w.dim() != 2 or 0 in w.shape or given is None or not isinstance(x, fx.Node):
        return None
    if (bias is not None and (b is None or b.shape != w.shape[:1])) or draft.value(x) is not None:
        return None
    if computed_in(given.dtype) is None or not given.shape[:-1]:
        return None
    return _Product(x, w, b, given.dtype, _rows(given))


def _turned(weight: torch.Tensor | None) -> torch.Tensor | None:
    return None if weight is None or weight.dim() != 2 else weight.t()


def _rows(given: TensorType) -> int | None:
    sizes = [d for d in given.shape[:-1] if isinstance(d, int)]
    return math.prod(sizes) if len(sizes) == len(given.shape) - 1 else None


def _convolution_is_faster(product: _Product, options: IpexOptions) -> bool:
    if options.products != "auto" or not _has_avx2_alone():
        return False
    return (
        product.weight.dtype is torch.float32
        and product.rows is not None
        and product.weight.numel() >= _BEYOND_THE_CACHE
    )


def _mkl_is_faster(product: _Product, options: IpexOptions) -> bool:
    """MKL packs for a number of rows, of which there have to be few enough that packing counts."""
    if options.products == "onednn" or product.weight.dtype is not torch.float32 or product.rows is None:
        return False
    if product.rows > _MOST_ROWS_MKL or not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        return False
    return options.products == "mkl" or processor.is_intel() or _has_avx2_alone()


def _has_avx2_alone() -> bool:
    """Whether the processor is another maker's than Intel, with AVX2 and without AVX-512."""
    return not processor.is_intel() and torch.backends.cpu.get_cpu_capability() == "AVX2"


def _by_mkl(draft: Draft, product: _Product, chain: Chain) -> fx.Node:
    packed = torch.ops.mkl._mkl_reorder_linear_weight(product.weight.contiguous(), product.rows)
    args = (product.x, draft.hold(packed), draft.hold(product.weight), _held(draft, product.bias), product.rows)
    return draft.graph.call_function(torch.ops.mkl._mkl_linear.default, args)


def _in_few_bits(draft: Draft, node: fx.Node, product: _Product, small: Quantized) -> None:
    """Torch's kernels take a matrix, and know no bias."""
    call = draft.graph.call_function
    aten = torch.ops.aten
    with draft.graph.inserting_before(node):
        flat = call(aten.reshape.default, (product.x, (-1, product.weight.shape[1])))
        held = [draft.hold(a) if isinstance(a, torch.Tensor) else a for a in small.arguments]
        made = call(small.op, (flat, *held))
        if product.bias is not None:
            made = call(aten.add_.Tensor, (made, draft.hold(product.bias)))
        made = call(_with_rows_of, (made, product.x))
        _replace(node, made)


def _with_rows_of(made: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return made.view(*x.shape[:-1], made.shape[-1])


def _by_onednn(draft: Draft, product: _Product, chain: Chain) -> fx.Node:
    packed = _ops._reorder_linear_weight(product.weight.contiguous(), product.rows)
    held, bias = draft.hold(packed), _held(draft, product.bias)
    if chain.other is not None:
        both = (product.x, chain.other, held, bias, chain.binary)
        return draft.graph.call_function(_ops._linear_pointwise.binary, both)
    name, numbers, algorithm = chain.unary
    args = (product.x, held, bias, name, list(numbers), algorithm)
    return draft.graph.call_function(_ops._linear_pointwise.default, args)


def _by_convolution(draft: Draft, product: _Product, chain: Chain) -> fx.Node:
    window = product.weight[:, :, None, None].contiguous()
    size = [1, product.weight.shape[1], product.rows, 1]
    packed = _ops._reorder_convolution_weight(window, [0, 0], [1, 1], [1, 1], 1, size)
    args = (product.x, chain.other, draft.hold(packed), _held(draft, product.bias), *chain.unary)
    return draft.graph.call_function(linear_by_convolution, (*args, chain.binary))


def linear_by_convolution(
    x: torch.Tensor,
    other: torch.Tensor | None,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    name: str,
    numbers: Sequence[float],
    algorithm: str,
    binary: str,
) -> torch.Tensor:
    """A linear layer as the convolution of an image, one place for each row, by a window of one place."""
    image, geometry = _as_image(x), ((0, 0), (1, 1), (1, 1), 1)
    if other is None:
        made = _ops._convolution_pointwise(image, weight, bias, *geometry, name, numbers, algorithm)
    else:
        beside = _as_image(other)
        made = _ops._convolution_pointwise.binary(image, beside, weight, bias, *geometry, binary, 1.0, None, [], None)
    rows: torch.Tensor = made.permute(0, 2, 3, 1)
    return rows.reshape(*x.shape[:-1], weight.shape[0])


def _as_image(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous().view(1, -1, 1, x.shape[-1]).permute(0, 3, 1, 2)


def _held(draft: Draft, tensor: torch.Tensor | None) -> fx.Node | None:
    return None if tensor is None else draft.hold(tensor)


def _replace(node: fx.Node, made: fx.Node) -> None:
    made.meta["value"] = node.meta["value"]
    node.replace_all_uses_with(made)
