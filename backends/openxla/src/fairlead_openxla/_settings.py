"""What of jax's configuration results depend on, set for one thread and for as long as a block lasts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax

from fairlead_openxla._releases import wide_types

__all__ = ["calling", "lowering"]


def calling() -> contextlib.AbstractContextManager[Any]:
    """For importing tensors, without which 64-bit integers are cut, and for running what is compiled."""
    config = jax.config
    if config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit:
        return _without_debugging()
    found: contextlib.AbstractContextManager[Any] = wide_types()
    return found


@contextlib.contextmanager
def _without_debugging() -> Iterator[None]:
    with wide_types(), jax.debug_nans(False), jax.debug_infs(False), jax.disable_jit(False):
        yield


@contextlib.contextmanager
def lowering() -> Iterator[None]:
    """For writing a graph: whatever the user has set, rules mean the same."""
    with (
        _without_debugging(),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.default_device(jax.devices("cpu")[0]),
    ):
        yield
