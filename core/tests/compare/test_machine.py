"""What a report says of the machine."""

from __future__ import annotations

import sys

import pytest
import torch

from fairlead._compare._machine import describe

VECTORS = {"AVX512": "(AVX-512)", "AVX2": "(AVX2)"}
"""What is said of the processor, by what torch finds it to have."""


@pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")
@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() not in VECTORS, reason="torch says something else here")
def test_a_processor_is_named_with_the_vectors_that_torch_finds() -> None:
    name, space, vectors = describe().processor.rpartition(" ")
    assert vectors == VECTORS[torch.backends.cpu.get_cpu_capability()]
    assert name + space
