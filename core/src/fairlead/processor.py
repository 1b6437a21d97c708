"""The processor that this process runs on: kernels are chosen by it, and stored artifacts belong to it.

What the system tells is read once. What torch's kernels use is asked of torch each time, since ``ATEN_CPU_CAPABILITY``
can keep it from what the processor has.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from pathlib import Path

__all__ = ["flags", "has_avx512", "is_intel", "name"]


def name() -> str:
    """What the system calls it, such as ``AMD EPYC 9B14``, which may stand for several generations.

    Outside of Linux what Python knows of it, which may be nothing.
    """
    return _facts().get("model name") or platform.processor()


def flags() -> frozenset[str]:
    """Its instruction sets by Linux's names, such as ``avx512f``; none on other systems."""
    return frozenset((_facts().get("flags") or _facts().get("Features") or "").split())


def is_intel() -> bool:
    """Whether Intel made it; False where the system does not say."""
    return "GenuineIntel" in (_facts().get("vendor_id") or platform.processor())


def has_avx512() -> bool:
    """Whether torch's kernels use AVX-512 here."""
    import torch

    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")


@functools.cache
def _facts() -> Mapping[str, str]:
    """By Linux's names, such as ``model name`` and ``flags``, of the last processor; nothing on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
