"""Quotients as they are written for CUDA, computed on a CPU, whose own division is exact but for denormal numbers."""

from __future__ import annotations

import jax
import numpy as np

from fairlead_openxla._arithmetic import divided
from fairlead_openxla._releases import wide_types
from fairlead_openxla._target import writing_for


def test_a_quotient_for_cuda_is_the_nearest_number() -> None:
    drawn = np.random.default_rng(0).integers(0, 2**32, (2, 100_000), dtype=np.uint32).view(np.float32)
    edges = np.array(np.meshgrid(*[[0, -0.0, 1, -3, np.inf, -np.inf, np.nan, 3e38]] * 2), np.float32).reshape(2, -1)
    x, y = np.concatenate([drawn, edges], 1)
    with np.errstate(all="ignore"):
        right = x / y
    with wide_types(), writing_for("cuda"):
        got = np.asarray(jax.jit(divided)(x, y))
    normal = _is_normal(x) & _is_normal(y) & _is_normal(right)
    assert normal.sum() > 90_000
    np.testing.assert_array_equal(got[normal], right[normal])
    zeros = normal & (right == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(right[zeros]))


def _is_normal(x: np.ndarray) -> np.ndarray:
    """XLA takes what is smaller for zero on a CPU."""
    return ~((np.abs(x) < np.finfo(np.float32).tiny) & (x != 0))
