"""What the system says of the processor."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

__all__ = ["facts"]


@functools.cache
def facts() -> Mapping[str, str]:
    """By Linux's names, such as ``model name`` and ``flags``, of the last processor; nothing on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
