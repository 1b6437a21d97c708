"""The backends of programs that name none: one for each type of device, and one for all others."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead import _settings
from fairlead._registry import registry
from fairlead.errors import ArgumentError

__all__ = ["by_device", "default", "set_default"]

_LAST = "inductor"
"""As torch has it."""

DEVICES = ("cpu", "cuda")
"""The types of devices that some backend of Fairlead runs on."""

_chosen: dict[str | None, str] = {}


def set_default(backend: str | None, *, device: str | None = None) -> None:
    """Have programs that name no backend use this one: on a type of device (``cpu``, ``cuda``), or on all others.

    Holds for what `fairlead.compile` is called with from now on, in the whole process; each graph goes by the device
    that its tensors are on. Comes before ``FAIRLEAD_BACKEND``; None takes a choice back. Raises `RegistryError` where
    no backend has the name, `ArgumentError` for a device that none runs on.

    >>> set_default("eager", device="cpu")
    >>> set_default(None, device="cpu")
    """
    if device is not None and device not in DEVICES:
        raise ArgumentError(
            f"no backend of Fairlead runs on {device!r}",
            where="fairlead.set_default(device=...), a type of device without a number",
            next=f"pass one of {', '.join(DEVICES)}, or leave device out",
        )
    if backend is None:
        _chosen.pop(device, None)
        return
    registry.wheel(backend)
    _chosen[device] = backend


def default() -> str:
    """The backend where nothing is chosen for the device."""
    return _chosen.get(None) or _settings.backend() or _LAST


def by_device() -> Mapping[str, str]:
    """The backends that were chosen for types of devices."""
    return {device: name for device, name in _chosen.items() if device is not None}
