"""Small runs, made up by hand: cases of every level, and what became of them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from fairlead import ir
from fairlead.backend import Capabilities
from fairlead_conformance import Case, Level, Result, Status, manifest
from fairlead_conformance._report import Judged, KnownFailure, Machine, Pack, Report, Run, report_of

DAY = datetime.date(2026, 3, 1)

CASES = (
    Case(id="lifecycle/discovery/any/s000", level=Level.L0, mandatory=True),
    Case(id="ops/aten.add.Tensor/f32/s000", level=Level.L1, dtypes=("f32",), ops=("aten.add.Tensor",), mandatory=True),
    Case(id="ops/aten.add.Tensor/f32/s001~transposed", level=Level.L1, dtypes=("f32",), ops=("aten.add.Tensor",)),
    Case(id="ops/aten.mm.default/f32/s000", level=Level.L1, ops=("aten.mm.default",), mandatory=True),
    Case(id="ops/aten.mm.default/bf16/s000", level=Level.L2, ops=("aten.mm.default",)),
    Case(id="ops/aten.sort.default/f32/s000", level=Level.L2, ops=("aten.sort.default",)),
    Case(id="training/linear/f32/s000", level=Level.L3, needs=("training",)),
    Case(id="robustness/threads/f32/s000", level=Level.L4),
)

KNOWN = KnownFailure(
    id="ops/aten.mm.default/bf16/s000",
    status=Status.FAIL_MISMATCH,
    reason="accumulates in bfloat16",
    issue="https://example.org/acme/issues/7",
    since=datetime.date(2026, 1, 30),
    expires=datetime.date(2026, 12, 31),
)


def result(case: Case, status: Status) -> Result:
    """A result that fits the status."""
    ops = case.ops or ("aten.mm.default",)
    bad = status.failed or status in (Status.KNOWN_FAIL, Status.HARNESS_ERROR)
    return Result(
        id=case.id,
        status=status,
        detail="output 0: 3 of 16 elements differ" if bad else "",
        check="values" if bad else "",
        native=ops if status is Status.PASS_NATIVE else (),
        extern=("aten.sort",) if status is Status.PASS_EXTERN else (),
        declined=dict.fromkeys(ops, "no kernel") if status is Status.DECLINED else {},
        compared=16 if status.passed else 0,
        seconds=0.0 if status is Status.NOT_RUN else 0.01,
    )


def run(level: Level = Level.L3) -> Run:
    return Run(
        level=level,
        seed=7,
        device="cpu",
        command=("fairlead-conformance", "run", "acme", "--level", level.name),
        started=datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC),
        seconds=1.0,
    )


STATUSES = (
    Status.PASS_NATIVE,
    Status.PASS_NATIVE,
    Status.PASS_NATIVE,
    Status.PASS_NATIVE,
    Status.KNOWN_FAIL,
    Status.PASS_EXTERN,
    Status.PASS_NATIVE,
)


def report(
    statuses: Sequence[Status] = STATUSES,
    *,
    level: Level = Level.L3,
    known: Sequence[KnownFailure] = (KNOWN,),
    facts: Run | None = None,
) -> Report:
    """The report of a run over `CASES`, with these statuses in their order."""
    cases = [case for case in CASES if case.level <= level]
    results = [result(case, status) for case, status in zip(cases, statuses, strict=False)]
    return report_of(cases, results, backend=ACME, machine=MACHINE, run=facts or run(level), pack=PACK, known=known)


def of_suite(level: Level = Level.L1, *, facts: Run | None = None, failing: Sequence[str] = ()) -> Report:
    """A report over the suite's own cases, none of which was run: all pass but those that are to fail."""
    cases = manifest(level)
    results = [result(c, Status.FAIL_STRIDE if c.id in failing else Status.PASS_NATIVE) for c in cases]
    return report_of(cases, results, backend=ABLE, machine=MACHINE, run=facts or run(level))


MACHINE = Machine(fairlead="0.1.0", python="3.12.3", torch="2.13.0", platform="Linux-x86_64")
PACK = Pack(version="1.0", sha256="0" * 64)
ACME = Judged(
    name="acme",
    wheel="fairlead-acme",
    version="1.2.0",
    capabilities={"devices": ["cpu"], "dtypes": ["f32"], "training": True, "extern_aten": ["aten.sort"]},
    versions={"acme-sdk": "9.1"},
)
ABLE = Judged(
    name="able",
    capabilities={
        "dtypes": [dtype.value for dtype in ir.DType],
        **{f.name: True for f in msgspec.structs.fields(Capabilities) if f.type in (bool, "bool")},
    },
)
