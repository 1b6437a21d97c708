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


@contextlib.contextmanager
def calling() -> Iterator[None]:
    """For importing tensors, without which 64-bit integers are cut, and for running what is compiled."""
    with _wide_types(), jax.debug_nans(False), jax.debug_infs(False):
        yield


@contextlib.contextmanager
def lowering() -> Iterator[None]:
    """For writing a graph: whatever the user has set, rules mean the same."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(calling())
        stack.enter_context(jax.disable_jit(False))
        stack.enter_context(jax.numpy_dtype_promotion("standard"))
        stack.enter_context(jax.numpy_rank_promotion("allow"))
        stack.enter_context(jax.default_device(jax.devices("cpu")[0]))
        yield
