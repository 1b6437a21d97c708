"""The machine and the versions that a result was measured with."""

from __future__ import annotations

import contextlib
import os
import platform
from importlib import metadata

from fairlead import processor
from fairlead._compare._data import Machine

__all__ = ["describe"]

PACKAGES = ("torch", "transformers", "onnxruntime", "onnx-ir", "openvino", "jax")

_VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}
"""What the kernel calls the vectors of a processor, the widest first."""


def describe() -> Machine:
    """This machine, and the versions of Python, of Fairlead's wheels and of what they commonly build on."""
    versions = {"python": platform.python_version()}
    ours = sorted({name for dist in metadata.distributions() if (name := dist.name or "").startswith("fairlead")})
    for name in (*PACKAGES, *ours):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    system = f"{platform.system()} {platform.release()}"
    return Machine(_processor(), os.cpu_count() or 1, _memory(), system, versions, _load())


def _processor() -> str:
    """Its name, and how wide its vectors are, since one name may stand for several generations."""
    name, flags = processor.name() or platform.machine(), processor.flags()
    return name + next((f" ({text})" for flag, text in _VECTORS.items() if flag in flags), "")


def _load() -> float:
    with contextlib.suppress(OSError, AttributeError):
        return os.getloadavg()[0]
    return 0.0


def _memory() -> float:
    """MiB, or zero where the system does not tell."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    return 0.0
