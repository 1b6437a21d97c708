"""What is being judged: one backend, by name, on one device, with one seed."""

from __future__ import annotations

import functools
from typing import Any

from fairlead.backend import Backend, Capabilities, Options
from fairlead.registry import registry

__all__ = ["Subject"]


class Subject:
    """A backend under test. ``seed`` salts every random input, so that no answer can be prepared.

    ``device``: a device of torch, such as ``cpu``, ``cuda`` or ``cuda:1``.

    >>> Subject("acme").place, Subject("acme", device="cuda").place
    ('cpu', 'cuda:0')
    """

    def __init__(self, name: str, *, seed: int = 0, device: str = "cpu") -> None:
        self.name = name
        self.seed = seed
        self.device = device

    @property
    def place(self) -> str:
        """The device as its tensors name it: ``cuda`` is the first of that kind."""
        kind, _, index = self.device.partition(":")
        return kind if kind == "cpu" else f"{kind}:{index or 0}"

    @functools.cached_property
    def backend(self) -> Backend[Any]:
        """The backend itself, imported and probed. Raises `fairlead.errors.RegistryError`."""
        return registry.ready(self.name)

    @property
    def capabilities(self) -> Capabilities:
        return self.backend.capabilities

    @functools.cached_property
    def options(self) -> Options:
        """The backend's options at their defaults: what users get is what is judged."""
        return self.backend.options_type()

    @property
    def numerics(self) -> tuple[str, ...]:
        """The named ways, declared in the capabilities, in which its numbers are less than the dtype promises."""
        return self.capabilities.numerics
