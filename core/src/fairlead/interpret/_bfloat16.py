"""Whether torch on this processor is quicker with bfloat16 than whoever computes it in float32."""

from __future__ import annotations

import torch

from fairlead import processor
from fairlead.ir import DType, Graph, TensorType
from fairlead.passes import share_of_products

__all__ = ["multiplies_bfloat16", "quicker_in_bfloat16"]

_NORM = "aten._native_batch_norm_legit_no_training.default"


def quicker_in_bfloat16(graph: Graph, *, folds_norms: bool = False, share: float = 1 / 5) -> str | None:
    """Why a backend that computes bfloat16 in float32 had better leave a graph on the CPU to others; None where not.

    So it is where products of bfloat16 are more than ``share`` of its work and torch has quicker instructions for them
    here than for float32's. The backend has weights in float32 from call to call. One that ``folds_norms`` keeps graphs
    with batch norms of inference: their convolutions gain less from the instructions than from norms that are computed
    with them.
    """
    if not multiplies_bfloat16() or _is_elsewhere(graph) or share_of_products(graph, DType.bf16) <= share:
        return None
    if folds_norms and any(node.op == _NORM for node in graph.nodes):
        return None
    return "slower than eager here: products of bfloat16, for which torch has instructions of this processor"


def multiplies_bfloat16() -> bool:
    """Whether torch multiplies bfloat16 on this CPU sooner than float32, by its instructions for that, through oneDNN.

    Those of AMX do, and AVX-512's on AMD's processors. Intel's that have AMX and arithmetic of float16 in AVX-512 are
    half as quick with AVX-512's as in float32 where AMX is switched off, as in many a virtual machine
    (docs/results/bfloat16.md).
    """
    return _has_instructions() and (_has_amx() or "avx512_fp16" not in processor.flags())


def _has_instructions() -> bool:
    """Whether torch multiplies bfloat16 on the CPU by AVX-512's or AMX's instructions for it, through oneDNN."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    return _has_amx() or bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


def _has_amx() -> bool:
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)())


def _is_elsewhere(graph: Graph) -> bool:
    types = (item.value.type for item in graph.inputs)
    return any(isinstance(t, TensorType) and t.device != "cpu" for t in types)
