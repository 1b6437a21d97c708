"""Memory that a call frees, kept for the next call."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

import torch

__all__ = ["keep_freed_memory", "keep_memory_of_steps"]

_BLOCK = 2**25 - 2**16
"""Bytes; a little less than glibc's DEFAULT_MMAP_THRESHOLD_MAX on 64 bits: it learns nothing from what is larger."""

_M_TRIM_THRESHOLD = -1
"""Of mallopt(3), from malloc.h."""

_NO_TRIMMING = -1
"""The threshold with which nothing is given back."""

_TUNABLES = ("trim_threshold", "mmap_threshold", "top_pad", "mmap_max")
"""What a process may be told of what it gives back, in GLIBC_TUNABLES or in variables of their own."""


@functools.cache
def keep_freed_memory() -> None:
    """Have glibc keep up to 64 MiB of its heap that are free, rather than give them back and ask for them again.

    It adapts to what a process frees (mallopt(3), M_MMAP_THRESHOLD): after a block of 32 MiB, blocks of up to that size
    are on the heap, of whose end it keeps twice as much. That is where a process is anyway that has once freed a tensor
    of that size. Nothing is written to the block here, so it takes no memory. glibc does not adapt where the process
    has set MALLOC_TRIM_THRESHOLD_ or MALLOC_MMAP_THRESHOLD_; other C libraries and allocators never do.
    """
    # No tensor, which a mode of the caller may make on another device, or as a fake one.
    torch.UntypedStorage(_BLOCK)  # type: ignore[no-untyped-call]


@functools.cache
def keep_memory_of_steps() -> None:
    """Have glibc keep all of its heap that is free: a step of training frees what it saved, and the next saves as much.

    So the process keeps the memory of its largest step, as it keeps that of a GPU, until ``malloc_trim(0)``. Where the
    environment says what is to be given back, that stays. glibc adapts no longer, and has no need to: blocks of up to
    32 MiB, which is as far as it goes, are on the heap since `keep_freed_memory`.
    """
    if sys.platform != "linux" or any(map(_is_told, _TUNABLES)):
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version"):
        libc.mallopt(_M_TRIM_THRESHOLD, _NO_TRIMMING)


def _is_told(what: str) -> bool:
    return f"MALLOC_{what.upper()}_" in os.environ or f"glibc.malloc.{what}=" in os.environ.get("GLIBC_TUNABLES", "")
