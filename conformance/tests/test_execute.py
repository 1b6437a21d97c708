"""One case against one backend: whatever happens is a result."""

from __future__ import annotations

from fairlead_conformance import Level, Status, Subject, execute, manifest


def test_the_reference_passes_with_torchs_kernels_or_its_own() -> None:
    results = [execute(case, Subject("eager")) for case in manifest(Level.L1)[::23]]
    assert results
    assert [r for r in results if not r.status.passed] == []


def test_a_backend_that_is_not_installed_fails_to_load() -> None:
    result = execute(manifest(Level.L1)[0], Subject("nowhere"))
    assert result.status is Status.FAIL_IMPORT
    assert "nowhere" in result.detail
