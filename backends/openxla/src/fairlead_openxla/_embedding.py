"""Rules of embeddings and their gradients."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fairlead_openxla._call import Call
from fairlead_openxla._indexing import checked
from fairlead_openxla._numbers import Array, wide
from fairlead_openxla._rules import rule

__all__: list[str] = []


@rule("embedding", takes_complex=True)
def embedding(c: Call, weight: Array, indices: Array, *rest: Any) -> Array:
    return jnp.take(weight, checked(c, indices, weight.shape[0], negative=False), 0, mode="clip")


@rule("embedding_dense_backward")
def embedding_backward(c: Call, grad: Array, indices: Array, rows: int, padding: int, by_frequency: bool) -> Array:
    """Each row's gradients added up, over how often it occurs where that is asked for; none for the padding row."""
    flat = jnp.ravel(checked(c, indices, rows, negative=False))
    grad = jnp.reshape(wide(grad), (flat.size, grad.shape[-1]))
    if by_frequency:
        often = jnp.zeros((rows,), grad.dtype).at[flat].add(1, mode="drop")
        grad = grad / often[flat][:, None]
    grad = jnp.where((flat == padding)[:, None], 0, grad)
    return jnp.zeros((rows, grad.shape[1]), grad.dtype).at[flat].add(grad, mode="drop")
