"""What is being judged: one backend, by name, on one device, with one seed."""

from __future__ import annotations

import functools
from typing import Any

from fairlead.backend import Backend, Capabilities, Options
from fairlead.registry import registry

__all__ = ["Subject"]


class Subject:
    """A backend under test. ``seed`` salts every random input, so that no answer can be prepared."""

    def __init__(self, name: str, *, seed: int = 0, device: str = "cpu") -> None:
        self.name = name
        self.seed = seed
        self.device = device

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
