"""Padding by reflection and repetition: reading by a table of indices, and adding up by it backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._table import Call, op


def _tables(x: Array, padding: Sequence[int], mode: str) -> list[Array]:
    """For each of the last dimensions, which element stands in each place of the result."""
    tables = []
    for d in range(len(padding) // 2):
        n = x.shape[-1 - d]
        before, after = padding[2 * d], padding[2 * d + 1]
        at = np.arange(-before, n + after)
        if mode == "edge":
            tables.append(np.clip(at, 0, n - 1))
            continue
        if max(before, after) >= n:
            raise ValueError(f"{max(before, after)} elements are reflected of {n}")
        tables.append((n - 1) - np.abs((n - 1) - np.abs(at)))
    return tables[::-1]


def _read(x: Array, tables: Sequence[Array]) -> Array:
    for d, table in enumerate(tables):
        x = np.take(x, table, d - len(tables))
    return x


@op("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def _reflect(call: Call, x: Array, padding: Sequence[int]) -> Array:
    return _read(x, _tables(x, padding, "reflect"))


@op("replication_pad1d", "replication_pad2d", "replication_pad3d")
def _replicate(call: Call, x: Array, padding: Sequence[int]) -> Array:
    return _read(x, _tables(x, padding, "edge"))


def _added(grad: Array, x: Array, tables: Sequence[Array]) -> Array:
    out = np.zeros(x.shape, wide(grad).dtype)
    key: Any = (..., *np.ix_(*tables))
    np.add.at(out, key, wide(grad))
    return out


@op("reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward")
def _reflect_backward(call: Call, grad: Array, x: Array, padding: Sequence[int]) -> Array:
    return _added(grad, x, _tables(x, padding, "reflect"))


@op("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def _replicate_backward(call: Call, grad: Array, x: Array, padding: Sequence[int]) -> Array:
    return _added(grad, x, _tables(x, padding, "edge"))
