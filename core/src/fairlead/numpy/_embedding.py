"""Embeddings, bags of them, and their gradients."""

from __future__ import annotations

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._indexing import checked
from fairlead.numpy._table import Call, op

SUM, MEAN, MAX = range(3)


@op("embedding")
def _embedding(
    call: Call, weight: Array, indices: Array, padding: int = -1, by_frequency: bool = False, sparse: bool = False
) -> Array:
    return weight[checked(indices, len(weight), negative=False)]


@op("embedding_dense_backward")
def _embedding_backward(call: Call, grad: Array, indices: Array, rows: int, padding: int, by_frequency: bool) -> Array:
    """Each row's gradients added up, over how often it occurs where that is asked for; none for the padding row."""
    flat = np.ravel(checked(indices, rows, negative=False))
    grad = np.reshape(wide(grad), (len(flat), -1 if grad.size else grad.shape[-1]))
    kept = flat != padding
    if by_frequency:
        grad = grad / np.bincount(flat, minlength=rows)[flat][:, None]
    out = np.zeros((rows, grad.shape[1]))
    np.add.at(out, flat[kept], grad[kept])
    return out


def _bag_of(count: int, offsets: Array) -> Array:
    """The bag that each index is in."""
    return np.searchsorted(offsets, np.arange(count), "right") - 1


@op("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    call: Call,
    weight: Array,
    indices: Array,
    offsets: Array,
    by_frequency: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    weights: Array | None = None,
    last_offset: bool = False,
    padding: int = -1,
) -> tuple[Array, Array, Array, Array]:
    """The bags, the bag of each index, the sizes of the bags, and for maxima the rows that they come from.

    What only the backward of another mode needs is as the CPU leaves it: no sizes for sums, sizes for rows.
    """
    bags = len(offsets) - last_offset
    starts = offsets[:bags].astype(np.int64)
    rows = checked(indices, len(weight), negative=False)
    bag = _bag_of(len(rows), starts)
    kept = np.flatnonzero(rows != padding)
    found = wide(weight)[rows]
    found = found if weights is None else found * wide(weights)[:, None]
    out = np.zeros((bags, weight.shape[1]))
    size = np.bincount(bag[kept], minlength=bags)
    largest = np.full((bags, weight.shape[1]), -1, np.int64)
    if mode == MAX:
        for i in kept:
            better = (largest[bag[i]] < 0) | (found[i] > out[bag[i]])
            out[bag[i]] = np.where(better, found[i], out[bag[i]])
            largest[bag[i]] = np.where(better, rows[i], largest[bag[i]])
    else:
        np.add.at(out, bag[kept], found[kept])
        out = out / np.maximum(size, 1)[:, None] if mode == MEAN else out
    if mode == SUM:
        size = np.zeros(bags, np.int64)
    if call.node.results[1] is not None and call.shape(1) == (0,):
        bag = bag[:0]
    return out, bag, size, np.maximum(largest, 0) if mode == MAX else size


@op("_embedding_bag_backward", "_embedding_bag_dense_backward")
def _embedding_bag_backward(
    call: Call,
    grad: Array,
    indices: Array,
    offsets: Array,
    bag: Array,
    sizes: Array,
    largest: Array,
    rows: int,
    by_frequency: bool,
    mode: int,
    sparse: bool,
    weights: Array | None,
    padding: int = -1,
) -> Array:
    grad = wide(grad)
    out = np.zeros((rows, grad.shape[1]))
    if mode == MAX:
        bags, columns = np.nonzero(np.broadcast_to(sizes[: len(grad), None] > 0, grad.shape))
        np.add.at(out, (largest[bags, columns], columns), grad[bags, columns])
        return out
    bag = _bag_of(len(indices), offsets)
    share = np.ones(len(indices)) if weights is None else wide(weights)
    kept = indices != padding
    if mode == MEAN:
        share = share / np.maximum(np.bincount(bag[kept], minlength=len(offsets)), 1)[bag]
    if by_frequency:
        share = share / np.bincount(indices, minlength=rows)[indices]
    np.add.at(out, indices[kept], (grad[bag] * share[:, None])[kept])
    return out


@op("_embedding_bag_per_sample_weights_backward")
def _embedding_bag_weights_backward(
    call: Call, grad: Array, weight: Array, indices: Array, offsets: Array, bag: Array, mode: int, padding: int = -1
) -> Array:
    bag = _bag_of(len(indices), offsets)
    return np.where(indices == padding, 0, np.sum(wide(grad)[bag] * wide(weight)[indices], 1))
