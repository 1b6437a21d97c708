"""Convolutions whose weights are known: batch norms folded in, packed once, images channels last."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from fairlead import processor
from fairlead.ir import TensorType
from fairlead_ipex._draft import Draft, op_of, type_of
from fairlead_ipex._dtypes import TORCH, computed_in, in_dtype
from fairlead_ipex._post_ops import Chain, Chains

__all__ = ["IMAGE", "LAYOUTS", "Convolution", "find_convolutions", "pack_convolutions"]

_ops = torch.ops.mkldnn
_BATCH_NORM = "aten._native_batch_norm_legit_no_training.default"

_LEAST_WORK = {torch.float32: 1_000_000, torch.bfloat16: 100_000}
"""oneDNN's op takes 30 microseconds more than torch's own to start; so many multiplications pay for that, or a batch
norm that is no op of its own any more."""

IMAGE = 4
"""The dimensions of a batch of images."""

_PERIOD, _WINDOWS, _USES = 4096, 14, 512
"""What lies a multiple of so many bytes apart falls on one set of the first-level cache. Of at least so many windows
along the last axis, and where each number is read so often in the mean, a copy of the images is worth it."""

_ADDED = 8
"""Channels of zeros: with the others, no two positions that are read in one step are a multiple of the period apart."""

_MANY_WINDOWS = 64
"""So many windows a line is taken to have whose length is known only at the call. Told nothing, oneDNN packs for images
of as many rows as columns, and packs anew at each call for what has one row."""


class Convolution(NamedTuple):
    """What a node makes of its first argument; ``channels`` is the dimension of the result's in its weight.

    It is computed in the dtype of the weight.
    """

    weight: torch.Tensor
    bias: torch.Tensor | None
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    transposed: bool
    output_padding: Sequence[int]
    groups: int

    @property
    def channels(self) -> int:
        return 1 if self.transposed else 0

    @property
    def is_of_lines(self) -> bool:
        """Whether it has one dimension: oneDNN gets it as one of images of one row."""
        return self.weight.dim() == IMAGE - 1


def find_convolutions(draft: Draft) -> dict[fx.Node, Convolution]:
    """Those with known weights that are faster packed, with the batch norm after each in its weights.

    Before: a module with ``aten.convolution``. After: no batch norm follows those that are returned, and no padding
    goes before them that they can do themselves.
    """
    found = {}
    for node in list(draft.graph.nodes):
        if (known := _convolution(draft, node)) is not None:
            made = _folded(draft, node, known)
            if made is not known or _is_worth_it(node, known):
                found[node] = made
    return found


def pack_convolutions(draft: Draft, convolutions: Mapping[fx.Node, Convolution], chain_of: Chains) -> None:
    """Before: `find_convolutions` found these. After: they are oneDNN's, packed."""
    for node, found in convolutions.items():
        _pack(draft, node, found, chain_of(node))


def _convolution(draft: Draft, node: fx.Node) -> Convolution | None:
    """The convolution that a node is, where its weights are known and oneDNN has a kernel for it."""
    if op_of(node) != "aten.convolution.default":
        return None
    args: Any = node.args
    x, weight, bias, *geometry = args
    w, b, given = draft.value(weight), draft.value(bias), type_of(x)
    if w is None or given is None or (bias is not None and b is None):
        return None
    dtype = computed_in(given.dtype)
    if dtype is None or len(given.shape) != w.dim() or 0 in w.shape:
        return None
    found = Convolution(w.to(dtype), None if b is None else b.to(dtype), *geometry)
    if found.transposed and (w.dim() != IMAGE or found.groups != 1):
        return None
    return _padded(node, found)


def _padded(node: fx.Node, found: Convolution) -> Convolution:
    """The convolution that pads by itself what was padded with as many zeros on both sides, or with none."""
    padded: Any = node.args[0]
    if op_of(padded) != "aten.constant_pad_nd.default" or found.transposed or not bool(found.weight.isfinite().all()):
        return found
    x, sizes, number = padded.args
    before, after = sizes[::2], sizes[1::2]
    if number != 0 or before != after or len(before) > len(found.padding):
        return found
    if not all(isinstance(n, int) and n >= 0 for n in before):
        return found
    added = [0] * (len(found.padding) - len(before)) + [*reversed(before)]
    padding = [a + b for a, b in zip(found.padding, added, strict=True)]
    node.args = (x, *node.args[1:4], padding, *node.args[5:])
    return found._replace(padding=padding)


def _is_worth_it(node: fx.Node, found: Convolution) -> bool:
    given, result = type_of(node.args[0]), type_of(node)
    return given is not None and result is not None and _work(found, given, result) >= _LEAST_WORK[found.weight.dtype]


def _work(found: Convolution, given: TensorType, result: TensorType) -> float:
    """The multiplications; without bound where sizes are unknown."""
    places = given.shape if found.transposed else result.shape
    sizes = [d for d in (places[0], *places[2:]) if isinstance(d, int)]
    return math.prod(sizes) * found.weight.numel() if len(sizes) == len(places) - 1 else math.inf


def _pack(draft: Draft, node: fx.Node, found: Convolution, chain: Chain) -> None:
    call = draft.graph.call_function
    x: Any = node.args[0]
    type_ = type_of(x)
    assert type_ is not None
    given, computed = TORCH[type_.dtype], found.weight.dtype
    if chain.other is not None and (found.transposed or found.is_of_lines or given is not computed):
        chain = Chain(node)
    with draft.graph.inserting_before(chain.last):
        x = in_dtype(draft, x, given, computed)
        if found.is_of_lines:
            made = call(torch.ops.aten.squeeze.dim, (_call(draft, *_as_images(draft, x, found, type_), chain), 2))
            if found.weight.shape[1] * found.groups == 1:  # such images lie both ways, and the result channels last
                made = call(_row_major, (made,))
        else:
            lay_out = _channels_last if found.weight.dim() == IMAGE else _row_major
            if chain.other is not None:
                chain = chain._replace(other=call(lay_out, (chain.other,)))
            size = [*_static(type_)]
            if _contends(found, size):
                x, found, size = _lengthened(draft, x, found, size)
            made = _call(draft, call(lay_out, (x,)), found, size or None, chain)
        made = in_dtype(draft, made, computed, given)
    made.meta["value"] = chain.last.meta["value"]
    chain.last.replace_all_uses_with(made)


def _contends(found: Convolution, size: Sequence[int]) -> bool:
    """Whether what oneDNN reads in one step lies where it falls on one set of the first-level cache.

    With AVX-512 it reads many windows in place. Those that are a multiple of 4096 bytes apart contend where they
    overlap and each number is read often (decision 0054). ``size``: of what it is given, nothing where it is unknown.
    """
    if not size or len(size) > IMAGE or found.transposed or found.groups != 1 or not processor.has_avx512():
        return False
    columns, channels, *window = found.weight.shape
    apart = channels * found.stride[-1] * found.weight.element_size()
    overlap = window[-1] > found.stride[-1] and size[-1] >= _WINDOWS * found.stride[-1]
    uses = columns * math.prod(window) / math.prod(found.stride)
    return found.weight.dtype is torch.float32 and apart % _PERIOD == 0 and overlap and uses >= _USES


def _lengthened(
    draft: Draft, x: fx.Node, found: Convolution, size: Sequence[int]
) -> tuple[fx.Node, Convolution, list[int]]:
    """Images, the convolution of them and their size, with channels of zeros added to images and weights."""
    count, channels, *places = size
    zeros = torch.zeros(count, _ADDED, *places).contiguous(memory_format=torch.channels_last)
    weight = torch.nn.functional.pad(found.weight, (*(0, 0) * len(places), 0, _ADDED))
    longer = draft.graph.call_function(torch.ops.aten.cat.default, ([x, draft.hold(zeros)], 1))
    return longer, found._replace(weight=weight), [count, channels + _ADDED, *places]


def _as_images(
    draft: Draft, x: fx.Node, found: Convolution, given: TensorType
) -> tuple[fx.Node, Convolution, list[int]]:
    """Lines as images of one row, the convolution of these, and the size that it is packed for."""
    count, channels, length = _typical(found, given)
    images, size = _of_images(found), [count, channels, 1, length]
    call = draft.graph.call_function
    rows = call(torch.ops.aten.unsqueeze.default, (x, 2))
    if not given.is_static or not _contends(images, size):
        return call(_row_major, (rows,)), images, size
    rows, images, size = _lengthened(draft, rows, images, size)
    return call(_channels_last, (rows,)), images, size


def _static(given: TensorType) -> tuple[int, ...]:
    """The sizes, or none where one of them is known only at the call."""
    return tuple(d for d in given.shape if isinstance(d, int)) if given.is_static else ()


def _typical(found: Convolution, given: TensorType) -> list[int]:
    """The size of lines; what is known only at the call is taken to be long enough to be packed for as others are."""
    (stride,), (_, channels, kernel) = found.stride, found.weight.shape
    usual = 1, channels * found.groups, _MANY_WINDOWS * kernel * stride
    return [size if isinstance(size, int) else other for size, other in zip(given.shape, usual, strict=True)]


def _of_images(found: Convolution) -> Convolution:
    stride, padding, dilation = ([n, *each] for n, each in zip((1, 0, 1), found[2:5], strict=True))
    return found._replace(weight=found.weight.unsqueeze(2), stride=stride, padding=padding, dilation=dilation)


def _call(draft: Draft, x: fx.Node, found: Convolution, size: Any, chain: Chain) -> fx.Node:
    call, weight = draft.graph.call_function, found.weight.contiguous()
    bias = None if found.bias is None else draft.hold(found.bias)
    name, numbers, algorithm = chain.unary
    if found.transposed:
        turned = found.padding, found.output_padding, found.stride, found.dilation, found.groups
        held = draft.hold(_ops._reorder_convolution_transpose_weight(weight, *turned, size))
        args: Any = (x, held, bias, *turned, name, list(numbers), algorithm)
        return call(_ops._convolution_transpose_pointwise.default, args)
    geometry = found.padding, found.stride, found.dilation, found.groups
    held = draft.hold(_ops._reorder_convolution_weight(weight, *geometry, size))
    if chain.other is not None:
        args = (x, chain.other, held, bias, *geometry, chain.binary, 1.0, None, [], None)
        return call(_ops._convolution_pointwise.binary, args)
    args = (x, held, bias, *geometry, name, list(numbers), algorithm)
    return call(_ops._convolution_pointwise.default, args)


def _folded(draft: Draft, node: fx.Node, found: Convolution) -> Convolution:
    """The convolution with the batch norm in its weights that alone reads it, which is left out."""
    norm = next(iter(node.users))
    if len(node.users) != 1 or op_of(norm) != _BATCH_NORM or norm.args[0] is not node:
        return found
    args: Any = norm.args
    scale, shift, mean, variance = map(draft.value, args[1:5])
    if mean is None or variance is None or (scale is None) != (args[1] is None):
        return found
    if (shift is None) != (args[2] is None):
        return found
    factor = torch.rsqrt(variance.double() + args[6]) * (1.0 if scale is None else scale.double())
    made = _scaled(found, factor, mean, 0.0 if shift is None else shift.double())
    if made is None:
        return found
    for user in list(norm.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(node)
    draft.graph.eliminate_dead_code()
    return made


def _scaled(
    found: Convolution, factor: torch.Tensor, mean: torch.Tensor, shift: torch.Tensor | float
) -> Convolution | None:
    """The weights of both, rounded once; None where they are not numbers, of which torch makes others."""
    offset = -mean.double() if found.bias is None else found.bias.double() - mean.double()
    wide = [1] * found.weight.dim()
    wide[found.channels] = -1
    dtype = found.weight.dtype
    weight, bias = (found.weight.double() * factor.view(wide)).to(dtype), (offset * factor + shift).to(dtype)
    are_numbers = bool(weight.isfinite().all() and bias.isfinite().all())
    return found._replace(weight=weight, bias=bias) if are_numbers else None


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _row_major(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous()


LAYOUTS = (_channels_last, _row_major)
"""What images and lines go through, so that they lie as oneDNN's kernels take them."""
