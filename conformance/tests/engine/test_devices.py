"""A case that is written down for the CPU, on another device; and the device in what a run refuses and reports."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
import pytest
import torch

from conformance.tests.report.fixtures import KNOWN, MACHINE, report, run
from fairlead.errors import ArgumentError
from fairlead.interpret import to_fx
from fairlead.ir import Builder, DType, Graph, Token, to_text, verify
from fairlead_conformance import Level, Result, Status, Subject, execute
from fairlead_conformance._device import device_of, home, onto, placed
from fairlead_conformance._families import manifest
from fairlead_conformance._oracle import adds_in_any_order
from fairlead_conformance._oracle._any_order import left_open
from fairlead_conformance._report._html import to_html
from fairlead_conformance._report._markdown import to_markdown
from fairlead_conformance._run import Session, Settings
from fairlead_conformance._run._worker import judged
from fairlead_conformance._witness._poison import Poisoned, poisoned

HAS_NO_GPU = torch.cuda.device_count() == 0


def graph() -> Graph:
    """A value of an input, one of a factory that names a device, and one of each."""
    b = Builder("placed")
    x = b.input("f32[2, 3]", "x")
    ramp = b.op("aten.arange.start_step", 0, 3, 1, dtype=DType.f32, device=Token("device", "cpu"), to="f32[3]")
    b.output(b.op("aten.add.Tensor", x, ramp))
    return b.graph()


def test_a_placed_graph_makes_everything_there() -> None:
    there = verify(placed(graph(), "meta"))
    (result,) = to_fx(there)(torch.empty(2, 3, device="meta"))
    assert result.device.type == "meta"
    assert device_of(there) == "meta"
    assert "cpu" not in to_text(there)


def test_a_placed_graph_comes_home_as_it_was() -> None:
    assert placed(placed(graph(), "cuda:0"), "cpu") == graph()
    assert placed(graph(), "cpu") is not None
    own = graph()
    assert placed(own, "cpu") is own


def test_an_input_keeps_its_strides_and_offset() -> None:
    x = torch.arange(40.0).as_strided((3, 4), (1, 6), 5)
    there = onto(x, "meta")
    assert (there.stride(), there.storage_offset(), there.device.type) == ((1, 6), 5, "meta")
    assert torch.equal(home(onto(x, "cpu")), x)


def test_the_kernels_of_the_cpu_are_poisoned_beside_those_of_the_device() -> None:
    hits: list[str] = []
    with poisoned(["relu"], hits, "cuda"), pytest.raises(Poisoned):
        torch.relu(torch.ones(2))
    assert hits == ["relu"]
    assert torch.equal(torch.relu(-torch.ones(2)), torch.zeros(2))


@pytest.mark.parametrize(("device", "open_"), [("cpu", False), ("cuda:0", True)])
def test_sums_of_many_threads_may_differ_in_their_last_bits_on_cuda(device: str, open_: bool) -> None:
    b = Builder("sums")
    b.output(b.op("aten.cumsum.default", b.input("f32[8]"), 0))
    assert adds_in_any_order(placed(b.graph(), device)) is open_
    assert not adds_in_any_order(placed(graph(), device))


@pytest.mark.parametrize(
    ("type_", "device", "open_"),
    [
        ("f32[2, 3, 4, 4]", "cpu", False),
        ("f32[2, 3, 4, 4] strides[48, 1, 12, 3]", "cpu", True),
        ("f32[2, 3, 4, 4]", "cuda:0", True),
    ],
)
def test_a_place_that_several_threads_write_is_left_open(type_: str, device: str, open_: bool) -> None:
    b = Builder("unpool")
    x, places = b.input(type_), b.input(type_.replace("f32", "i64"))
    b.output(b.op("aten.max_unpool2d.default", x, places, [8, 8]))
    assert left_open(placed(b.graph(), device)) is open_
    assert not left_open(placed(graph(), device))


def refused(device: str, backend: str = "eager") -> list[str]:
    with pytest.raises(ArgumentError) as refusal:
        Session(Settings(backend=backend, level=Level.L0, device=device))
    return [line.strip() for line in str(refusal.value).splitlines()]


@pytest.mark.parametrize("device", ["tpu", "mps", "xpu:0", "cuda:x", "CUDA"])
def test_a_device_that_the_suite_does_not_know(device: str) -> None:
    assert refused(device) == [
        f"FL203: the suite does not run on {device!r}",
        "from: --device",
        "next: one of: cpu, cuda; or cuda:1",
    ]


@pytest.mark.skipif(not HAS_NO_GPU, reason="there is a device")
def test_a_device_that_the_machine_does_not_have() -> None:
    what, where, next_ = refused("cuda")
    assert what.startswith("FL203: there is no device 'cuda' here: torch ")
    assert where == "from: torch.cuda"
    assert next_ == "next: run it on a machine that has one, or leave --device out: the CPU is judged"


def test_a_device_that_the_backend_does_not_list() -> None:
    what, where, next_ = refused("cuda", "openvino")
    assert what == "FL203: backend 'openvino' does not run on cuda: its capabilities list cpu"
    assert where.startswith("from: fairlead-openvino")
    assert next_ == "next: judge it on one of these: --device=cpu"


@pytest.mark.skipif(not HAS_NO_GPU, reason="there is a device")
def test_a_case_that_costs_its_process_the_device_is_a_crash() -> None:
    subject = Subject("eager", device="cuda")
    passed = Result(id="ops/x/f32/s000", status=Status.PASS_NATIVE, compared=3)
    result, lost = judged(passed, subject)
    assert (result.status, result.check, lost) == (Status.FAIL_CRASH, "survives", True)
    assert result.detail.startswith("the device is lost to its process: ")
    failed = msgspec.structs.replace(passed, status=Status.FAIL_RUN, check="runs", detail="it raised")
    result, lost = judged(failed, subject)
    assert (result.status, lost) == (Status.FAIL_RUN, True)
    assert judged(passed, Subject("eager")) == (passed, False)


def test_a_report_names_the_device() -> None:
    there = msgspec.structs.replace(MACHINE, accelerator="NVIDIA H200", driver="580.1", cuda="13.0")
    made = report(facts=msgspec.structs.replace(run(), device="cuda"))
    made = msgspec.structs.replace(made, machine=there)
    assert "cuda (NVIDIA H200, driver 580.1, CUDA 13.0)" in to_markdown(made)
    assert "cuda (NVIDIA H200, driver 580.1, CUDA 13.0)" in to_html(made)


def test_a_known_failure_of_another_device_says_nothing_here(tmp_path: Path) -> None:
    case = next(c for c in manifest(Level.L1) if not c.mandatory and c.family == "ops")
    path = tmp_path / "known-failures.toml"
    path.write_text(
        f'[[failure]]\nid = "{case.id}"\nstatus = "FAIL_MISMATCH"\nreason = "{KNOWN.reason}"\nissue = "{KNOWN.issue}"\n'
        f'since = 2026-01-01\nexpires = {datetime.date.max}\ndevice = "cuda"\n'
    )
    assert Session(Settings(backend="eager"), known=path).known.entries == ()


@pytest.mark.gpu
@pytest.mark.parametrize("family", ["graph", "directed", "semantics"])
def test_a_case_of_each_kind_passes_on_cuda(family: str) -> None:
    case = next(c for c in manifest(Level.L1) if c.family == family)
    result = execute(case, Subject("eager", device="cuda"))
    assert result.status.passed, result.detail


@pytest.mark.gpu
def test_silent_work_on_the_device_is_seen() -> None:
    hits: list[str] = []
    with poisoned(["relu"], hits, "cuda"), pytest.raises(Poisoned):
        torch.relu(torch.ones(2, device="cuda"))
    assert hits == ["relu"]
