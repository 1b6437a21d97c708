"""The options of the backend."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlead.backend import Options

__all__ = ["TensorRTOptions"]


class TensorRTOptions(Options, frozen=True, kw_only=True):
    """What a caller may set.

    ``flavour``: which SDK builds and runs; ``auto`` takes ``tensorrt`` before ``tensorrt_rtx``. ``engine``: who makes
    the engine of a graph, TensorRT's builder or ``torch_tensorrt``, where that is installed. ``precision``: what
    products of f32 are computed in; ``tf32`` has 10 bits of fraction, ``f16`` and ``bf16`` round their operands and
    results. ``weights``: ``refit`` gives an engine new values without building it again, ``baked`` builds it again,
    and lets the builder arrange them more freely. ``compute_capabilities``: those that ``tensorrt_rtx`` builds for,
    such as ``8.9``; none is its own choice. ``workspace``: MiB of scratch memory at most, 0 for no limit of ours.
    ``optimization``: TensorRT's level, from 0, built fast, to 5; None is its own.
    """

    flavour: Literal["auto", "tensorrt", "tensorrt_rtx"] = "auto"
    engine: Literal["builder", "torch_tensorrt"] = "builder"
    precision: Literal["f32", "tf32", "f16", "bf16"] = "f32"
    weights: Literal["refit", "baked"] = "refit"
    compute_capabilities: tuple[str, ...] = ()
    workspace: Annotated[int, msgspec.Meta(ge=0)] = 0
    optimization: Annotated[int, msgspec.Meta(ge=0, le=5)] | None = None
