"""Products of an odd width, row by row without gaps, by kernels that write 16 bytes at a time.

A row of 50,257 halves begins at an address that such a kernel cannot write to, and so do seven of eight rows; but every
eighth begins as far beyond a multiple of 16 bytes as the first of its class. A product of the rows of one class can be
written in place, from the first column on that lies at such a multiple. The products of all classes are one batch, as
that column moves by as much from class to class. What is left at both edges are a few dozen columns.
"""

from __future__ import annotations

import torch

__all__ = ["OP", "in_bands", "takes"]

_WIDTH = 16
"""The bytes that a kernel writes at a time."""

_BAND = 8448
"""The columns of a batch: 33 tiles of 256. All classes read their weights, which stay in the device's second cache."""

_SUMMED = 1600
"""The most numbers that are summed for each result if the weights of a band, 27 MB of 50 on an H100, are to stay there.

Beside two products and a kernel that puts their rows together little is gained from there on
(docs/results/odd-width.md).
"""


def takes(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether the product can be made so, and quickly; what lies otherwise is copied."""
    rows, summed = x.shape
    classes = _WIDTH // x.element_size()
    if x.element_size() != 2 or rows % classes or summed % classes:
        return False
    is_laid_out = x.stride() == (summed, 1) and weight.stride() == (1, summed)
    return is_laid_out and summed <= _SUMMED


def in_bands(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """``x @ weight``, of ``(rows, summed)`` and ``(summed, width)``, row-major. Of sizes that `takes`."""
    rows, summed = x.shape
    width, classes = weight.shape[1], _WIDTH // x.element_size()
    x, columns = x.contiguous(), weight.t().contiguous()
    start = columns.storage_offset()
    step = -width % classes
    inner = (width - step * (classes - 1)) // classes * classes
    per_class = rows // classes
    batch = x.as_strided((classes, per_class, summed), (summed, classes * summed, 1))
    result = x.new_empty(rows, width)
    for first in range(0, inner, _BAND):
        count = min(_BAND, inner - first)
        weights = columns.as_strided((classes, summed, count), (step * summed, 1, summed), start + first * summed)
        out = result.as_strided((classes, per_class, count), (width + step, classes * width, 1), first)
        torch.bmm(batch, weights, out=out)
    for edge in (slice(0, step * (classes - 1)), slice(inner, width)):
        result[:, edge] = _few_columns(x, columns[edge].t())
    return result


def _few_columns(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """In float32 on CUDA: a sum of few tiles is divided among multiprocessors, whose halves would be added up."""
    return torch.mm(x, weight, out_dtype=torch.float32) if x.is_cuda else torch.mm(x, weight)


def _of_fakes(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[0], weight.shape[1])


def _whole(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """On a CPU, where oneDNN cannot write halves so, and ATen turns it off for the whole process when it has tried."""
    return torch.mm(x, weight)


_op = torch.library.custom_op("fairlead_inductor::in_bands", in_bands, mutates_args=(), device_types="cuda")
_op.register_fake(_of_fakes)
_op.register_kernel("cpu", _whole)

OP = torch.ops.fairlead_inductor.in_bands.default
"""``x @ weight``, of sizes that `takes`."""
