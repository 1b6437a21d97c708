"""Whose processor this is: MKL's products are the fastest on Intel's, oneDNN's on others."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

__all__ = ["is_intel"]


@functools.cache
def is_intel() -> bool:
    """Whether Intel made the processor; False where the system does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:  # not on Linux
        text = platform.processor()
    return "GenuineIntel" in text
