"""Torch's CUDA graph trees, as Inductor's modes ``reduce-overhead`` and ``max-autotune`` use them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._inductor.compile_fx import compile_fx_inner

from fairlead.interpret import copies
from fairlead.ir import Graph, Kind, Role

__all__ = ["admit_thread", "compiler_on_cuda", "kept", "records"]

_ALIGNMENT = 16
"""Bytes, of which Inductor's kernels take addresses to be multiples."""


def records(config: Mapping[str, Any], devices: set[str]) -> bool:
    """Whether code for these devices, compiled with this configuration, is recorded and replayed.

    What it returns lies in memory that the next replay writes.

    >>> records({"triton.cudagraphs": True}, {"cuda"}), records({"triton.cudagraphs": True}, {"cpu"})
    (True, False)
    """
    return bool(config.get("triton.cudagraphs")) and "cuda" in devices


def compiler_on_cuda(graph: Graph, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Inductor's own ``inner_compile``, told what it reads off Dynamo's and AOTAutograd's records otherwise.

    Weights stay where they are, and are read there; other inputs are copied into a recording, or to where kernels may
    read many bytes at once, as are weights at odd addresses.
    """
    weights = (i for i, item in enumerate(graph.inputs) if item.role in (Role.parameter, Role.buffer))
    told = {
        "static_input_idxs": tuple(i for i in weights if inputs[i].data_ptr() % _ALIGNMENT == 0),
        "is_inference": graph.kind is Kind.inference,
        "is_backward": graph.kind is Kind.backward,
    }
    return lambda module, examples, **how: compile_fx_inner(module, examples, **{**how, **told})


def kept(results: Sequence[Any], copied: Sequence[int]) -> list[Any]:
    """Results of a replay, of which those at ``copied``, that a caller may keep, are copied out of its memory."""
    found = list(results)
    for k, copy in zip(copied, copies([found[k] for k in copied]), strict=True):
        found[k] = copy
    return found


def admit_thread() -> None:
    """Give this thread a table of recordings, which only the thread that imported torch's module has before 2.13."""
    from torch._inductor import cudagraph_trees

    names = ("tree_manager_containers", "tree_manager_locks")
    local = cudagraph_trees.local
    if hasattr(local, names[0]) or torch._C._is_key_in_tls(names[0]):
        return
    tables: tuple[dict[int, Any], ...] = ({}, defaultdict(threading.Lock))
    for name, table in zip(names, tables, strict=True):
        setattr(local, name, table)
        torch._C._stash_obj_in_tls(name, table)
