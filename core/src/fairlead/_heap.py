"""Memory that a call frees, kept for the next call."""

from __future__ import annotations

import functools

import torch

__all__ = ["keep_freed_memory"]

_BLOCK = 2**25 - 2**16
"""Bytes; a little less than glibc's DEFAULT_MMAP_THRESHOLD_MAX on 64 bits: it learns nothing from what is larger."""


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
