"""Case packs: the same bytes for the same cases, inputs regenerated as specified, and the pack in the wheel."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import msgspec
import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from conformance.generate._capture import captured
from conformance.generate._summary import tiers
from fairlead.ir import Builder, DType, TensorType, from_bytes, opset, to_bytes
from fairlead.ir.random import Integers, Uniform
from fairlead_conformance import Level, Status, Subject, execute
from fairlead_conformance._families import family
from fairlead_conformance._oracle import tells_open_places
from fairlead_conformance._pack import Content, Drawn, Entry, Kept, Pack, Saved, made, pack, specified, write


def graph(text: str):
    b = Builder()
    b.output(b.op("aten.neg.default", b.input(text)))
    return b.graph()


def cases() -> list[tuple[Entry, Content]]:
    content = Content(to_bytes(graph("f32[2, 3]")), ((Drawn(Uniform(-1.0, 1.0)),),))
    variants = (("nan", Level.L2),)
    return [(Entry("ops", "neg", "f32", n, Level.L1, ops=("aten.neg.default",), variants=variants), content)
            for n in range(40)]  # fmt: skip


def written(tmp_path: Path, content: list[tuple[Entry, Content]]) -> Path:
    path = tmp_path / "cases.zip"
    with open(path, "wb") as file:
        write(file, "9.9", content, {"torch": "2.13.0"})
    return path


def test_the_order_of_cases_does_not_change_the_bytes() -> None:
    first, second = io.BytesIO(), io.BytesIO()
    write(first, "9.9", cases(), {})
    write(second, "9.9", cases()[::-1], {})
    assert first.getvalue() == second.getvalue()


def test_a_pack_has_what_it_was_written_with(tmp_path: Path) -> None:
    found = Pack(written(tmp_path, cases()))
    assert found.verify()
    assert found.manifest.counts == {"ops": {"L1": 40, "L2": 40}}
    assert [c.id for c in found.cases("ops")][:3] == ["ops/neg/f32/s000", "ops/neg/f32/s000~nan", "ops/neg/f32/s001"]
    assert [c.level for c in found.cases("ops")][:2] == [Level.L1, Level.L2]
    assert found.content("ops/neg/f32/s039") == cases()[39][1]
    assert found.cases("opgrad") == []


def test_a_pack_that_was_changed_is_noticed(tmp_path: Path) -> None:
    changed = [(msgspec.structs.replace(entry, level=Level.L2), content) for entry, content in cases()]
    other = Pack(written(tmp_path, changed))
    assert other.manifest.sha256 != Pack(written(tmp_path, cases())).manifest.sha256


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.zip"
    with zipfile.ZipFile(path, "w") as file:
        manifest = msgspec.structs.replace(pack().manifest, format="something-else")
        file.writestr("manifest.json", msgspec.json.encode(manifest))
    with pytest.raises(ValueError, match="something-else"):
        Pack(path)


def test_the_seed_changes_what_is_drawn_and_not_what_is_kept() -> None:
    b = Builder()
    b.output(b.op("aten.index_select.default", b.input("f32[5]"), 0, b.input("i64[2]")))
    given = (Drawn(Uniform(1.0, 2.0)), Kept(torch.tensor([4, 0]).numpy().tobytes()))
    first, again, other = (made(b.graph(), given, name="a/b/c", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])
    assert first[1].tolist() == other[1].tolist() == [4, 0]
    assert 1.0 <= first[0].min() <= first[0].max() < 2.0


@pytest.mark.parametrize(("strides", "offset"), [((3, 1), 0), ((1, 2), 0), ((3, 1), 5), ((0, 1), 2), ((8, 2), 1)])
def test_a_tensor_lies_in_memory_as_it_did(strides: tuple[int, int], offset: int) -> None:
    memory = torch.arange(40.0)
    tensor = memory.as_strided((2, 3), strides, offset)
    (again,) = made(graph("f32[2, 3]"), [specified(tensor, TensorType(DType.f32, (2, 3)), None)], name="x", seed=0)
    assert torch.equal(again, tensor)
    assert (again.stride(), again.storage_offset()) == (strides, offset)


@pytest.mark.parametrize("dtype", ["bf16", "c64", "bool", "i8"])
def test_any_dtype_is_kept_bit_by_bit(dtype: str) -> None:
    type_ = graph(f"{dtype}[4]").inputs[0].value.tensor
    values = {"bf16": torch.tensor([-0.0, float("nan"), 1e-40, 3.0], dtype=torch.bfloat16), "c64": torch.randn(4) * 1j}
    tensor = values.get(dtype, torch.tensor([0, 1, 1, 0], dtype=torch.bool if dtype == "bool" else torch.int8))
    (again,) = made(graph(f"{dtype}[4]"), [specified(tensor, type_, None)], name="x", seed=0)
    assert again.dtype == tensor.dtype
    assert torch.equal(again.view(torch.uint8), tensor.view(torch.uint8))


def test_a_backward_graph_gets_what_its_forward_kept() -> None:
    b = Builder()
    b.output(b.op("aten.add.Tensor", b.op("aten.neg.default", b.input("f32[2]")), b.input("f32[2]")))
    x, y = torch.ones(2), torch.zeros(2)
    first, second = made(b.graph(), [Saved(0, is_input=True), Saved(0)], name="x", seed=0, forward=([x], [y]))
    assert first is x
    assert second is y


def test_the_pack_in_the_wheel_is_whole() -> None:
    assert pack().verify()
    ids = [case.id for name in pack().manifest.counts for case in pack().cases(name)]
    assert len(ids) == len(set(ids)) == sum(n for levels in pack().manifest.counts.values() for n in levels.values())
    for family_ in pack().manifest.counts:
        own = [entry.id for entry in pack().entries if entry.family == family_]
        assert own == sorted(own)


def test_the_page_about_the_pack_counts_the_ops_of_the_opset_as_it_is() -> None:
    """`make pack` writes the page, and an op that comes later needs a new line rather than a new pack."""
    page = (Path(__file__).parents[2] / "docs/results/pack.md").read_text("utf-8")
    assert "\n".join(tiers({op for entry in pack().entries for op in entry.ops})) in page
    assert pack().manifest.sha256 in page


def test_no_case_of_the_pack_has_an_op_that_is_not_in_the_opset() -> None:
    assert {op for entry in pack().entries for op in entry.ops if opset.spec(op) is None} == set()


def test_no_case_of_the_pack_goes_on_with_one_of_several_right_places() -> None:
    for entry in pack().entries:
        if not any(op.startswith(("aten.sort", "aten.topk", "aten.mode", "aten.median")) for op in entry.ops):
            continue
        for graph in from_bytes(pack().content(entry.id).module).graphs:
            places = {n.results[1].id for n in graph.nodes if tells_open_places(n) and n.results[1] is not None}
            assert not places & {v.id for n in graph.nodes for v in n.operands()}, entry.id


@pytest.mark.parametrize("name", ["ops", "opgrad", "directed", "errors", "ircompat"])
def test_the_reference_passes_a_sample_of_the_family(name: str) -> None:
    results = [execute(case, Subject("eager", seed=5)) for case in family(name).cases()[::37]]
    assert [r for r in results if not r.status.passed and r.status is not Status.DECLINED] == []
    declined = [r.id for r in results if r.status is Status.DECLINED]
    assert [case for case in declined if "max_unpool" not in case] == [], "torch says what these give"
    assert len(declined) < len(results) / 10


def test_an_integer_in_the_range_of_a_small_dtype_stays_in_it() -> None:
    (x,) = made(graph("i8[100]"), [Drawn(Integers(-3, 4))], name="x", seed=9)
    assert (x.min().item(), x.max().item()) == (-3, 4)


def test_a_case_that_the_pack_lacks_is_an_error_of_the_suite() -> None:
    case = msgspec.structs.replace(pack().cases("ops")[0], id="ops/nothing/f32/s000")
    assert execute(case, Subject("eager")).status is Status.HARNESS_ERROR


@pytest.mark.parametrize("op", [torch.empty_like, lambda x: x.new_empty(2, 3), lambda x: torch.empty(x.shape) + x])
def test_what_memory_held_before_decides_about_no_sample(op) -> None:
    torch.use_deterministic_algorithms(True)  # which fills memory with NaN that nobody wrote to
    try:
        (call,) = captured(op, SampleInput(torch.zeros(2, 3)), training=False)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(call.outputs[0], torch.zeros(2, 3))
