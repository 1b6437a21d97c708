"""What differs between releases of jax, from 0.4.38 on: nothing else in this wheel asks which one it has."""

from __future__ import annotations

import importlib
from typing import Any

import jax

__all__ = ["direct_exporter", "direct_importer", "wide_types"]


def wide_types(enabled: bool = True) -> Any:
    """A block in which 64-bit types are what they are, in this thread; once it was experimental."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(enabled)
    from jax.experimental import enable_x64

    return enable_x64(enabled)


def direct_importer() -> Any | None:
    """What ``jax.dlpack.from_dlpack`` ends in, or None: a private function of a capsule, a device and a stream."""
    return _private("dlpack_managed_tensor_to_buffer")


def direct_exporter() -> Any | None:
    """What ``__dlpack__`` of an array ends in, or None: a private function of an array and a stream."""
    return _private("buffer_to_dlpack_managed_tensor")


def _private(function: str) -> Any | None:
    for name in ("jaxlib._jax", "jaxlib.xla_extension"):
        try:
            return getattr(importlib.import_module(name), function)
        except (ImportError, AttributeError):
            continue
    return None
