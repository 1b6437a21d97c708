"""What is told of the processor agrees with what torch and Python say of it."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
import torch

from fairlead import processor


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch):
    """Has the system tell these lines, or nothing."""

    def tell(text: str | None) -> None:
        def read(self: Path, *args: object) -> str:
            if text is None:
                raise FileNotFoundError(self)
            return text

        monkeypatch.setattr(Path, "read_text", read)
        processor._facts.cache_clear()

    yield tell
    monkeypatch.undo()
    processor._facts.cache_clear()


def test_linux_names_it(system) -> None:
    system("vendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu avx2 avx512f\n")
    assert processor.name() == "Intel(R) Xeon(R)"
    assert processor.is_intel()
    assert processor.flags() == {"fpu", "avx2", "avx512f"}


def test_arms_instructions_are_called_features(system) -> None:
    system("processor\t: 0\nFeatures\t: fp asimd sve\n")
    assert processor.flags() == {"fp", "asimd", "sve"}
    assert not processor.is_intel()


@pytest.mark.parametrize(("said", "is_intel"), [("Intel64 Family 6 Model 106, GenuineIntel", True), ("arm", False)])
def test_where_the_system_says_nothing_python_may(system, monkeypatch: pytest.MonkeyPatch, said, is_intel) -> None:
    system(None)
    monkeypatch.setattr(platform, "processor", lambda: said)
    assert processor.name() == said
    assert processor.is_intel() is is_intel
    assert processor.flags() == frozenset()


@pytest.mark.skipif(not processor.flags(), reason="the system does not say")
def test_torch_uses_no_instructions_that_the_system_does_not_know() -> None:
    assert processor.has_avx512() <= ("avx512f" in processor.flags())


@pytest.mark.parametrize(("capability", "has"), [("AVX512", True), ("AVX512_VNNI", True), ("AVX2", False)])
def test_avx512_is_what_torch_says(monkeypatch: pytest.MonkeyPatch, capability: str, has: bool) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert processor.has_avx512() is has
