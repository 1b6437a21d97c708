"""Convolutions and what belongs to them, as one product of matrices for each place in the kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairlead.numpy._dtypes import Array, operand
from fairlead.numpy._table import Call, op

Sizes = Sequence[int]


class Geometry(NamedTuple):
    """How a kernel goes over a padded input."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int = 1

    def taps(self, output: Sizes) -> Iterator[tuple[Any, Any]]:
        """Each place in the kernel, and the elements of the padded input that it meets, one for each output."""
        for place in itertools.product(*map(range, self.kernel)):
            starts = [k * d for k, d in zip(place, self.dilation, strict=True)]
            window = zip(starts, output, self.stride, strict=True)
            yield place, tuple(slice(a, a + (n - 1) * s + 1 if n else a, s) for a, n, s in window)

    def output(self, spatial: Sizes) -> tuple[int, ...]:
        return tuple(
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(spatial, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        )

    def padded(self, x: Array) -> Array:
        return np.pad(x, [(0, 0), (0, 0), *((p, p) for p in self.padding)])

    def trimmed(self, x: Array) -> Array:
        """The reverse of `padded`."""
        return x[(..., *(slice(p, n - p) for p, n in zip(self.padding, x.shape[2:], strict=True)))]

    def rows(self, x: Array) -> Array:
        """(batch, channels, ...) as (batch, groups, channels of a group, all positions)."""
        positions = math.prod(x.shape[2:])
        return np.reshape(x, (x.shape[0], self.groups, x.shape[1] // self.groups, positions))

    def by_group(self, weight: Array) -> Array:
        """(groups, outputs of a group, inputs of a group, *kernel)."""
        return np.reshape(weight, (self.groups, weight.shape[0] // self.groups, *weight.shape[1:]))


def _geometry(weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Geometry:
    rank = weight.ndim - 2
    stride, padding, dilation = (tuple(a) * rank if len(a) == 1 else tuple(a) for a in (stride, padding, dilation))
    return Geometry(weight.shape[2:], stride, padding, dilation, groups)


def forward(x: Array, weight: Array, geometry: Geometry, size: Sizes | None = None) -> Array:
    """The cross-correlation of the input with the kernel; with ``size`` no more of it than that."""
    spatial = geometry.output(x.shape[2:]) if size is None else tuple(size)
    if any(n < 0 for n in spatial) or x.shape[1] != weight.shape[1] * geometry.groups:
        raise ValueError(f"a kernel of {list(weight.shape)} does not fit an input of {list(x.shape)}")
    padded, kernel = geometry.padded(x), geometry.by_group(weight)
    out: Array = np.zeros((x.shape[0], geometry.groups, kernel.shape[1], math.prod(spatial)), x.dtype)
    for place, window in geometry.taps(spatial):
        out += kernel[(..., *place)] @ geometry.rows(padded[(..., *window)])
    return np.reshape(out, (x.shape[0], weight.shape[0], *spatial))


def input_gradient(grad: Array, weight: Array, geometry: Geometry, spatial: Sizes) -> Array:
    """The adjoint of `forward` in its input: also what a transposed convolution is."""
    kernel, rows = geometry.by_group(weight), geometry.rows(grad)
    full = [n + 2 * p for n, p in zip(spatial, geometry.padding, strict=True)]
    out = np.zeros((grad.shape[0], geometry.groups * weight.shape[1], *full), grad.dtype)
    for place, window in geometry.taps(grad.shape[2:]):
        part = np.swapaxes(kernel[(..., *place)], -1, -2) @ rows
        out[(..., *window)] += np.reshape(part, (*out.shape[:2], *grad.shape[2:]))
    return geometry.trimmed(out)


def weight_gradient(grad: Array, x: Array, geometry: Geometry) -> Array:
    """The adjoint of `forward` in its kernel."""
    padded, rows = geometry.padded(x), geometry.rows(grad)
    out: Array = np.zeros((geometry.groups, rows.shape[2], x.shape[1] // geometry.groups, *geometry.kernel), grad.dtype)
    for place, window in geometry.taps(grad.shape[2:]):
        other = geometry.rows(padded[(..., *window)])
        out[(..., *place)] = np.sum(rows @ np.swapaxes(other, -1, -2), 0)
    return np.reshape(out, (grad.shape[1], -1 if out.size else out.shape[2], *geometry.kernel))


@op("convolution")
def _convolution(
    call: Call,
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Array:
    geometry = _geometry(weight, stride, padding, dilation, groups)
    x, weight = operand(x, call.dtype), operand(weight, call.dtype)
    if transposed:
        extra = tuple(output_padding) * (weight.ndim - 2 if len(output_padding) == 1 else 1)
        spatial = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1 + e
            for n, k, s, p, d, e in zip(x.shape[2:], *geometry[:4], extra, strict=True)
        ]
        out = input_gradient(x, weight, geometry, spatial)
    else:
        out = forward(x, weight, geometry)
    return out if bias is None else out + np.reshape(operand(bias, call.dtype), (-1,) + (1,) * (x.ndim - 2))


@op("convolution_backward")
def _convolution_backward(
    call: Call,
    grad: Array,
    x: Array,
    weight: Array,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    geometry = _geometry(weight, stride, padding, dilation, groups)
    grad, x, weight = (np.conj(operand(a, call.dtype)) for a in (grad, x, weight))
    of_input = of_weight = None
    if wanted[0]:
        gradient = forward if transposed else input_gradient
        of_input = gradient(grad, weight, geometry, x.shape[2:])
    if wanted[1]:
        of_weight = weight_gradient(x, grad, geometry) if transposed else weight_gradient(grad, x, geometry)
        of_weight = np.conj(of_weight)
    of_bias = np.conj(np.sum(grad, (0, *range(2, grad.ndim)))) if wanted[2] else None
    return None if of_input is None else np.conj(of_input), of_weight, of_bias


@op("im2col")
def _im2col(call: Call, x: Array, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Array:
    """Each window as a column: (batch, channels and kernel, windows)."""
    geometry = Geometry(kernel, stride, padding, dilation)
    batched = x if x.ndim == 4 else x[None]
    padded, spatial = geometry.padded(batched), geometry.output(x.shape[-2:])
    parts = [
        padded[(..., *window)].reshape(*batched.shape[:2], math.prod(spatial)) for _, window in geometry.taps(spatial)
    ]
    out = np.stack(parts, 2).reshape(len(batched), batched.shape[1] * len(parts), math.prod(spatial))
    return out if x.ndim == 4 else out[0]


@op("col2im")
def _col2im(call: Call, x: Array, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Array:
    """The adjoint of im2col: what several windows show is added up."""
    geometry = Geometry(kernel, stride, padding, dilation)
    batched = operand(x if x.ndim == 3 else x[None], call.dtype)
    spatial, count = geometry.output(size), math.prod(kernel)
    parts = np.reshape(batched, (len(batched), batched.shape[1] // count, count, *spatial))
    full = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    out = np.zeros((*parts.shape[:2], *full), parts.dtype)
    for index, (_, window) in enumerate(geometry.taps(spatial)):
        out[(..., *window)] += parts[:, :, index]
    out = geometry.trimmed(out)
    return out if x.ndim == 3 else out[0]
