"""Which processor this is: what multiplies the fastest depends on its maker and its instructions."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

__all__ = ["has_avx2_alone", "has_avx512", "is_intel"]


@functools.cache
def is_intel() -> bool:
    """Whether Intel made the processor; False where the system does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:  # not on Linux
        text = platform.processor()
    return "GenuineIntel" in text


@functools.cache
def has_avx2_alone() -> bool:
    """Whether it is another maker's, with AVX2 and without AVX-512."""
    import torch

    return not is_intel() and torch.backends.cpu.get_cpu_capability() == "AVX2"


@functools.cache
def has_avx512() -> bool:
    """Whether torch's kernels use AVX-512 here."""
    import torch

    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")
