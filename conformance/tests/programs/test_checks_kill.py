"""Each fault that a forward pass does not show is found by the check that is there for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from fairlead.registry import registry
from fairlead_conformance import Level, Result, Status, Subject, execute, manifest

from . import faults
from .faults import Faulty

CASES = {case.id: case for case in manifest(Level.L4)}

S = Status
KILLS: dict[str, tuple[Faulty, str, Status]] = {
    "memoises": (Faulty(faults.Memoises), "semantics/fresh-inputs-give-fresh-results", S.FAIL_MISMATCH),
    "reuses its buffers": (Faulty(faults.ReusesBuffers), "semantics/first-result-is-kept", S.FAIL_ALIAS),
    "keeps stale weights": (Faulty(bakes_constants=True), "semantics/weights-written-in-place", S.FAIL_MISMATCH),
    "clobbers inputs": (Faulty(faults.ClobbersInputs), "semantics/inputs-are-left-alone", S.FAIL_MUTATION),
    "swaps inputs": (Faulty(faults.SwapsInputs), "semantics/inputs-keep-their-order", S.FAIL_MISMATCH),
    "duplicates a result": (
        Faulty(faults.DuplicatesFirstResult),
        "semantics/results-keep-their-order",
        S.FAIL_MISMATCH,
    ),
    "crashes on nothing": (Faulty(faults.CrashesOnEmpty), "semantics/batches-of-none-and-of-one", S.FAIL_RUN),
    "wavers": (Faulty(faults.Wavers), "semantics/same-inputs-give-the-same-bits", S.FAIL_NONDETERMINISM),
    "keeps the first sizes": (Faulty(faults.KeepsFirstSizes), "semantics/a-length-that-grows", S.FAIL_MISMATCH),
    "changes the default dtype": (
        Faulty(faults.ChangesDefaultDtype),
        "semantics/constants-inside-of-the-program",
        S.FAIL_STATE,
    ),
    "draws one number more": (
        Faulty(faults.DrawsOneMore),
        "semantics/a-program-that-draws-nothing-moves-no-generator",
        S.FAIL_RNG,
    ),
    "draws the same each time": (Faulty(faults.DrawsConstants, rng=True), "semantics/each-call-draws-anew", S.FAIL_RNG),
    "drops nothing": (Faulty(faults.DropsNothing, rng=True), "semantics/dropout-drops-the-right-share", S.FAIL_RNG),
    "takes one branch": (Faulty(faults.TakesOneBranch), "semantics/both-ways-of-a-cond", S.FAIL_MISMATCH),
    "ignores casts": (
        Faulty(faults.IgnoresCasts),
        "semantics/autocast-rounds-what-passes-through",
        S.FAIL_MISMATCH,
    ),
    "loses gradients of biases": (Faulty(faults.LosesBiasGradients), "training/gradients-of-biases", S.FAIL_GRAD),
    "bends gradients": (Faulty(faults.BendsGradients), "training/gradients-of-weights-and-inputs", S.FAIL_GRAD),
    "keeps inputs": (Faulty(faults.KeepsInputs), "robustness/five-hundred-calls-leave-no-tensors", S.FAIL_LEAK),
    "shares its scratch": (Faulty(faults.SharesScratch), "robustness/one-program-in-eight-threads", S.FAIL_MISMATCH),
}


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    registry.unregister(faults.NAME)
    torch.set_default_dtype(torch.float32)


def _judged(backend: Any, check: str) -> Result:
    registry.register(backend)
    return execute(CASES[f"{check}/f32/s000"], Subject(faults.NAME))


@pytest.mark.parametrize("fault", KILLS)
def test_the_check_finds_the_fault(fault: str) -> None:
    backend, check, status = KILLS[fault]
    result = _judged(backend, check)
    assert (result.status, result.detail) == (status, result.detail)


@pytest.mark.parametrize("check", sorted({check for _, check, _ in KILLS.values()}))
def test_the_check_lets_the_same_backend_without_a_fault_pass(check: str) -> None:
    assert _judged(Faulty(), check).status is Status.PASS_NATIVE


def test_every_case_of_programs_has_an_id_of_its_own() -> None:
    ids = [case.id for case in manifest(Level.L4)]
    assert len(ids) == len(set(ids))
