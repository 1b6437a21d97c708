"""Torch's CUDA graph trees, as Inductor's modes ``reduce-overhead`` and ``max-autotune`` use them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch

__all__ = ["admit_thread", "records"]


def records(config: Mapping[str, Any], devices: set[str]) -> bool:
    """Whether code for these devices, compiled with this configuration, is recorded and replayed.

    What it returns lies in memory that the next replay writes.

    >>> records({"triton.cudagraphs": True}, {"cuda"}), records({"triton.cudagraphs": True}, {"cpu"})
    (True, False)
    """
    return bool(config.get("triton.cudagraphs")) and "cuda" in devices


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
