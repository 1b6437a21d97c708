"""Fairlead backend: torch's Inductor compiler, fed from the IR."""

from __future__ import annotations

from fairlead_inductor._backend import InductorBackend, InductorOptions

__all__ = ["InductorBackend", "InductorOptions", "backend"]

backend = InductorBackend()
