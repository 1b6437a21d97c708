"""What of jax's configuration results depend on, set for one thread and for as long as a block lasts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import jax
import torch

from fairlead_openxla._devices import jax_device
from fairlead_openxla._releases import wide_types
from fairlead_openxla._target import writing_for

__all__ = ["calling", "lowering"]

_STARTED_IN = os.getpid()
"""The process that has XLA's threads; whoever needs this module goes on to start them."""


def calling() -> contextlib.AbstractContextManager[Any]:
    """For importing tensors, without which 64-bit integers are cut, and for running what is compiled."""
    if os.getpid() != _STARTED_IN:
        raise _forked()
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
def lowering(device: torch.device, *, tf32: bool = False) -> Iterator[None]:
    """For writing a graph for a device: whatever the user has set, rules mean the same."""
    if os.getpid() != _STARTED_IN:
        raise _forked()
    with (
        writing_for(device.type, tf32=tf32),
        _without_debugging(),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.default_device(jax_device(device)),
    ):
        yield


def _forked() -> RuntimeError:
    """A call would wait for threads that only the parent has."""
    return RuntimeError(
        "XLA's threads did not come along when this process was forked\n"
        f"  from: fairlead-openxla, process {os.getpid()}; XLA was started in process {_STARTED_IN}\n"
        '  next: start processes by multiprocessing.get_context("spawn"), or compile first in the child'
    )
