"""What differs between releases of jax, from 0.4.38 on: nothing else in this wheel asks which one it has."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import jax
from jax.experimental import serialize_executable

__all__ = ["cpu_apart", "direct_exporter", "direct_importer", "loaded_onto", "turns_products", "wide_types"]


_LOWERS_APART = (0, 10)
"""The first release that was tried which lowers for a device without starting the others; 0.4.38 does not."""

_TURNS_PRODUCTS = (0, 10)
"""The first release that was tried which runs every product whose result is turned; 0.4.38 ends with an error."""


def turns_products() -> bool:
    """Whether the result of a product may be turned: else XLA lays it out by columns, which its own kernel refuses."""
    return bool(jax.__version_info__ >= _TURNS_PRODUCTS)


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


def cpu_apart() -> Any | None:
    """A CPU of our own, where jax has not started: its public functions start every platform that is installed.

    None where jax has started, has not these private functions, or is of a release that starts all of them to lower.
    """
    from jax._src import xla_bridge

    try:
        if jax.__version_info__ < _LOWERS_APART or xla_bridge.backends_are_initialized() or direct_importer() is None:
            return None
        return xla_bridge.make_cpu_client().local_devices()[0]
    except (AttributeError, TypeError):
        return None


def loaded_onto(device: Any, code: bytes, arguments: Any, results: Any) -> Any:
    """What ``serialize_executable.serialize`` gave, on one device; once it was on all that there are."""
    load = serialize_executable.deserialize_and_load
    where = {"execution_devices": [device]} if "execution_devices" in inspect.signature(load).parameters else {}
    return load(code, arguments, results, backend=device.client, **where)


def _private(function: str) -> Any | None:
    for name in ("jaxlib._jax", "jaxlib.xla_extension"):
        try:
            return getattr(importlib.import_module(name), function)
        except (ImportError, AttributeError):
            continue
    return None
