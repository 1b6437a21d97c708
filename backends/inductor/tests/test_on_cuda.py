"""What Inductor is given for CUDA, asked and computed without a GPU."""

from __future__ import annotations

import pytest
import torch
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from fairlead.interpret import run, to_fx
from fairlead.ir import Graph, parse_graph
from fairlead_inductor import InductorBackend
from fairlead_inductor._exact import exact
from fairlead_inductor._rounding import rounding


def graph(*lines: str) -> Graph:
    return parse_graph("\n".join(["graph @g inference {", *(f"  {line}" for line in lines), "}"]))


def given(there: Graph, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """What the ops compute that Inductor is given for such inputs on CUDA, here run on the CPU."""
    with FakeTensorMode():
        fakes = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda") for x in inputs]
        module = make_fx(exact(to_fx(there)))(*fakes)
    for node in module.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": "cpu"}
    module.recompile()
    return list(module(*inputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_what_is_drawn_has_the_dtype_of_the_operand(dtype: torch.dtype) -> None:
    name = {torch.float32: "f32", torch.float16: "f16"}[dtype]
    there = graph(
        f'in %0 user "" : {name}[64] @cuda:0',
        f"%1 = aten.bernoulli.p(%0, 0.25, none) : {name}[64] @cuda:0",
        "out %1 user",
    )
    with FakeTensorMode():
        fake = torch.empty(64, dtype=dtype, device="cuda")
        module = make_fx(exact(to_fx(there)), decomposition_table=select_decomp_table())(fake)
        (drawn,) = module(fake)
    assert drawn.dtype is dtype


@pytest.mark.parametrize("dtype", ["u8", "i8", "i16"])
def test_narrow_integers_are_added_up_in_32_bits_and_overflow_as_before(dtype: str) -> None:
    there = graph(
        f'in %0 user "" : {dtype}[3] @cuda:0',
        'in %1 user "" : i64[5] @cuda:0',
        f'in %2 user "" : {dtype}[5] @cuda:0',
        f"%3 = aten.scatter_add.default(%0, 0, %1, %2) : {dtype}[3] @cuda:0",
        "out %3 user",
    )
    kind = {"u8": torch.uint8, "i8": torch.int8, "i16": torch.int16}[dtype]
    most = torch.iinfo(kind).max
    x, index = torch.tensor([1, 2, 3], dtype=kind), torch.tensor([0, 0, 2, 0, 1])
    source = torch.tensor([most, most, 5, 7, most], dtype=kind)
    (found,) = given(there, [x, index, source])
    assert found.dtype is kind
    assert torch.equal(found, x.scatter_add(0, index, source))


@pytest.mark.parametrize("first", ["5.5, %0", "%0, -2.5"])
def test_a_number_may_be_divided_or_divide(first: str) -> None:
    there = graph(
        'in %0 user "" : f32[6] @cuda:0',
        f'%1 = aten.div.Tensor_mode({first}, "floor") : f32[6] @cuda:0',
        "out %1 user",
    )
    x = torch.tensor([1e-39, -1e-39, 3.0, -7.0, 1e30, 0.25])
    (found,), (right,) = given(there, [x]), run(there, [x])
    assert torch.equal(found, right)


def rounds_quotients(op: str, *, on_cuda: bool) -> bool:
    there = graph('in %0 user "" : f32[6] @cuda:0', f"%1 = {op} : f32[6] @cuda:0", "out %1 user")
    return any("division" in name or "divison" in name for name in rounding(there, on_cuda=on_cuda))


def test_quotients_are_rounded_as_eagers_where_they_were_asked_for() -> None:
    """A softmax divides as well, and a norm does; torch.compile does not round those as eager either."""
    if not rounds_quotients("aten.div.Tensor(%0, 3)", on_cuda=True):
        pytest.skip("this release of torch has no such option")
    assert not rounds_quotients("aten.softmax.int(%0, 0)", on_cuda=True)
    assert not rounds_quotients("aten.div.Tensor(%0, 3)", on_cuda=False)


def test_what_inductor_gets_wrong_on_cuda_is_declined_there_alone() -> None:
    asked = InductorBackend().supports
    for device, declined in (("", False), (" @cuda:0", True)):
        there = graph(
            f'in %0 user "" : f32[3, 4]{device}',
            f'in %2 user "" : f32[5]{device}',
            f"%1 = aten.bucketize.Tensor(%0, %2, false, false) : i64[3, 4]{device}",
            "out %1 user",
        )
        assert bool(asked(there.nodes[0]).reason) is declined


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_of_halves_is_rounded_from_float32(weighted: bool) -> None:
    there = graph(
        'in %0 user "" : bf16[5, 3] @cuda:0',
        'in %1 user "" : i64[5] @cuda:0',
        'in %2 user "" : bf16[3] @cuda:0',
        f"%3, %4 = aten.nll_loss_forward.default(%0, %1, {'%2' if weighted else 'none'}, 1, -100)"
        " : bf16[] @cuda:0, bf16[] @cuda:0",
        "out %3 user",
        "out %4 user",
    )
    x, weight = torch.randn(5, 3).log_softmax(1).bfloat16(), torch.rand(3).bfloat16()
    target = torch.tensor([0, 2, -100, 1, 1])
    found = given(there, [x, target, weight])
    right = torch.ops.aten.nll_loss_forward.default(x.float(), target, weight.float() if weighted else None, 1, -100)
    assert InductorBackend().supports(there.nodes[0]).accepted
    assert all(torch.equal(mine, theirs.bfloat16()) for mine, theirs in zip(found, right, strict=True))
