"""The options of the backend."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlead.backend import Options

__all__ = ["OnnxRuntimeOptions"]


class OnnxRuntimeOptions(Options, frozen=True, kw_only=True):
    """What a caller may set; the defaults are the fastest that are exact.

    ``providers``: execution providers, in order of preference. ``graph_optimization``: how far ONNX Runtime rewrites
    the graph. ``intra_op_threads``: 0 follows ``torch.get_num_threads()``. ``spinning``: whether idle threads burn time
    between the ops of a call, to wake up sooner; they never do after it. ``disabled_optimizers``: names of ONNX
    Runtime's rewrites to leave out. ``session_config``: entries of its session configuration, passed on as they are.
    """

    providers: tuple[str, ...] = ("CPUExecutionProvider",)
    graph_optimization: Literal["disabled", "basic", "extended", "all"] = "all"
    intra_op_threads: Annotated[int, msgspec.Meta(ge=0)] = 0
    spinning: bool = True
    disabled_optimizers: tuple[str, ...] = ("SkipLayerNormFusion",)
    session_config: dict[str, str] = {}
