"""What devices are called, for what must not import torch."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["KEYS", "kind_of"]

KEYS: Mapping[str, str] = {"cpu": "CPU", "cuda": "CUDA"}
"""The kinds of devices that the suite runs on, and what torch's dispatcher calls their kernels."""


def kind_of(device: str) -> str:
    """``cuda`` of ``cuda:0``.

    >>> kind_of("cuda:0"), kind_of("cpu")
    ('cuda', 'cpu')
    """
    return device.partition(":")[0]
