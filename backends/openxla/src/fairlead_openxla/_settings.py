"""What of jax's configuration results depend on, set for one thread and for as long as a block lasts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax

__all__ = ["calling", "lowering"]


def _wide_types() -> Any:
    """64-bit types; older releases of jax have the block in another place."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64(True)


def calling() -> contextlib.AbstractContextManager[Any]:
    """For importing tensors, without which 64-bit integers are cut, and for running what is compiled."""
    config = jax.config
    if config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit:
        return _without_debugging()
    found: contextlib.AbstractContextManager[Any] = _wide_types()
    return found


@contextlib.contextmanager
def _without_debugging() -> Iterator[None]:
    with _wide_types(), jax.debug_nans(False), jax.debug_infs(False), jax.disable_jit(False):
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
