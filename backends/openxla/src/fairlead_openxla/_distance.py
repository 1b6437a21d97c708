"""Rules of distances between rows, in any p-norm."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, wide
from fairlead_openxla._reductions import norm_of
from fairlead_openxla._rules import rule

__all__: list[str] = []


def _norms(gap: Array, p: float) -> Array:
    return norm_of(jnp.abs(gap), p, (gap.ndim - 1,), keepdim=False)


@rule("_cdist_forward")
def cdist(c: Call, x: Array, y: Array, p: float, mode: Any = None) -> Array:
    return _norms(wide(x)[..., :, None, :] - wide(y)[..., None, :, :], p)


@rule("_pdist_forward")
def pdist(c: Call, x: Array, p: float = 2.0) -> Array:
    first, second = np.triu_indices(x.shape[0], 1)
    return _norms(wide(x)[first] - wide(x)[second], p)
