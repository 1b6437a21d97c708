"""Products of groups of rows, each with a matrix of its own: the experts of a mixture."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from fairlead.ir import DType, Node, Value
from fairlead_openxla._call import Call
from fairlead_openxla._layouts import Layout, Wanted
from fairlead_openxla._matmul import product
from fairlead_openxla._numbers import Array, cast, jax_dtype
from fairlead_openxla._rules import rule

__all__: list[str] = []

_RANKS = 2, 3
"""Of rows, and of one matrix for each group."""

_MOST_GROUPS = 128
"""Each group is a loop of the program, which XLA takes its time to compile."""

_STEP, _MOST_ROWS, _OF_MANY = 16, 48, 32
"""A group should seldom need a second tile; where it has more rows than one holds, less is left over of smaller ones.

A product of 48 rows takes not twice as long as one of 16 (docs/results/xla-forms.md).
"""

_APART = Layout((0, 2, 1), apart=True)
"""Each group's matrix by itself, since XLA copies one that it slices, and with its columns in order.

The product of that and the transpose of a tile is the faster of the two, whatever the width (`turns`).
"""


def _declined(node: Node) -> str | None:
    x, matrices, ends, *others = node.args
    assert isinstance(x, Value), "what is multiplied is a tensor"
    assert isinstance(matrices, Value), "what it is multiplied by is a tensor"
    if "cuda" in x.tensor.device:
        return "products of groups on CUDA: torch has a kernel for them"
    known = matrices.tensor.is_static and 0 not in matrices.tensor.shape
    if (
        not known
        or (x.tensor.rank, matrices.tensor.rank) != _RANKS
        or ends is None
        or any(a is not None for a in others)
    ):
        return "products of groups other than of rows with matrices of a known size"
    groups = matrices.tensor.shape[0]
    return None if isinstance(groups, int) and groups <= _MOST_GROUPS else f"products of {groups} groups"


def _apart(node: Node) -> Wanted:
    return 1, _APART


@rule("_grouped_mm", "transformers.grouped_mm_fallback.default", unless=_declined, places=_apart)
def products_of_groups(
    c: Call, x: Array, matrices: Array, ends: Array, bias: None = None, out_dtype: None = None
) -> Array:
    """Rows from one end to the next, by the matrix of their group; zeros behind the last, where ATen has anything.

    How many rows a group has is known in a call. So each takes as many tiles of a fixed height as it needs, the last
    of which goes on into the next group, whose own tiles write over it.
    """
    rows, (groups, _, columns) = len(x), matrices.shape
    height = _height(rows, groups)
    turned = c.placed()
    x = jnp.pad(cast(x, c.dtype), ((0, height), (0, 0)))
    out = jnp.zeros((rows + height, columns), jax_dtype(c.dtype))
    first, ends = jnp.int32(0), jnp.clip(ends.astype(jnp.int64), 0, rows).astype(jnp.int32)
    for group in range(groups):
        matrix = matrices[group].T if turned is None else turned[group]
        out, first = _tiles(x, matrix, out, (first, jnp.maximum(first, ends[group])), height, c.dtype)
    return jnp.where(jnp.arange(rows)[:, None] < first, out[:rows], jnp.zeros((), out.dtype))


def _height(rows: int, groups: int) -> int:
    """Rows of a tile: in steps, a third more than those of a group in the mean, if one tile can have so many."""
    if 2 * rows <= groups:
        return 1
    wanted = -(-4 * rows // (3 * groups * _STEP)) * _STEP
    return min(wanted if wanted <= _MOST_ROWS else _OF_MANY, rows)


def _tiles(
    x: Array, turned: Array, out: Array, ends: tuple[Array, Array], height: int, dtype: DType
) -> tuple[Array, Array]:
    """``out`` with the products of the rows between ``ends`` and a matrix, and the second of the ends."""
    first, last = ends

    def is_left(state: tuple[Array, Array]) -> Array:
        return state[0] < last

    def body(state: tuple[Array, Array]) -> tuple[Array, Array]:
        at, out = state
        tile = lax.optimization_barrier(lax.dynamic_slice_in_dim(x, at, height).T)
        made = lax.optimization_barrier(product(turned, tile, dtype)).T
        return at + height, lax.dynamic_update_slice_in_dim(out, cast(made, dtype), at, 0)

    _, out = lax.while_loop(is_left, body, (first, out))
    return out, last
