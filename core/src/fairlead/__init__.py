"""Fairlead: one captured PyTorch graph, any compiler backend behind a name.

>>> import fairlead
>>> "eager" in {b.name for b in fairlead.list_backends()}
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead._bisect import bisect
    from fairlead._defaults import set_default
    from fairlead._dims import Dim
    from fairlead._explain import compile_times, explain
    from fairlead._freeze import Frozen, freeze
    from fairlead._registry import BackendInfo
    from fairlead._step import TrainingStep, compile_step
    from fairlead._user import compile, compile_ahead

    __version__: str

__all__ = [
    "Dim",
    "FairleadError",
    "Frozen",
    "TrainingStep",
    "__version__",
    "bisect",
    "compile",
    "compile_ahead",
    "compile_step",
    "compile_times",
    "explain",
    "freeze",
    "list_backends",
    "set_default",
]


def list_backends() -> list[BackendInfo]:
    """The backends that can be named here, by their wheels' metadata. Imports none of them."""
    from fairlead._registry import registry

    return registry.describe()


def __getattr__(name: str) -> object:
    """What needs torch, and the version that needs a search, which ``import fairlead`` does not spend."""
    if name == "__version__":
        return _version()
    if name not in __all__:
        raise AttributeError(f"module 'fairlead' has no attribute {name!r}")
    if name == "set_default":
        from fairlead._defaults import set_default

        return set_default
    if name == "bisect":
        from fairlead._bisect import bisect

        return bisect
    from fairlead import _explain, _step, _user

    if name in _step.__all__:
        return getattr(_step, name)
    return getattr(_explain if name in ("compile_times", "explain") else _user, name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("fairlead")
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
