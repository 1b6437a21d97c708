"""What ONNX Runtime computes on CUDA is what eager does, and what it cannot compute there is left to others."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

import fairlead

pytestmark = pytest.mark.gpu


@pytest.fixture
def module() -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4)).eval().cuda()


def compiled(program: Any, **how: Any) -> Any:
    return fairlead.compile(program, backend="onnxrt", fallback=(), **how)


def batch(size: int = 8) -> torch.Tensor:
    return torch.randn(size, 16, device="cuda")


def test_results_are_eagers_and_are_kept_while_later_calls_run(module: Any) -> None:
    program = compiled(module)
    inputs = [batch() for _ in range(20)]
    with torch.no_grad():
        results = [program(x) for x in inputs]
        for got, x in zip(results, inputs, strict=True):
            torch.testing.assert_close(got, module(x))
    assert program.fairlead.placement.native_share == 1.0


def test_products_are_of_whole_float32_numbers_unless_less_is_accepted() -> None:
    a, b = (torch.randn(512, 512, device="cuda") for _ in range(2))
    exact = a.double() @ b.double()
    worst = []
    for precision in (None, "high"):
        torch._dynamo.reset()
        worst.append(float((compiled(torch.matmul, precision=precision)(a, b) - exact).abs().max()))
    assert worst[0] < 1e-3 < worst[1]


def test_a_convolution_is_of_whole_float32_numbers() -> None:
    torch._dynamo.reset()
    conv = nn.Conv2d(64, 64, 3, padding=1).eval().cuda()
    x = torch.randn(4, 64, 16, 16, device="cuda")
    with torch.no_grad():
        got = compiled(conv)(x)
        exact = copy.deepcopy(conv).double()(x.double())
    assert (got - exact).abs().max() < 1e-4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_as_exact_as_eagers(dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    exact = nn.Sequential(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 64), nn.Softmax(-1)).cuda()
    module = copy.deepcopy(exact).eval().to(dtype)
    x = torch.randn(16, 8, 8, 8, device="cuda", dtype=dtype)
    with torch.no_grad():
        wanted = copy.deepcopy(module).double()(x.double())
        mine, theirs = ((run(x).double() - wanted).abs().max() for run in (compiled(module), module))
    assert mine <= 2 * theirs


def test_it_learns_as_eager_does(module: Any) -> None:
    module = module.train()
    twin = copy.deepcopy(module)
    program = compiled(module)
    steps = [torch.optim.AdamW(m.parameters(), lr=1e-2) for m in (module, twin)]
    for _ in range(8):
        x, target = batch(), torch.randn(8, 4, device="cuda")
        for step, run in zip(steps, (program, twin), strict=True):
            step.zero_grad()
            (run(x) - target).square().mean().backward()
            step.step()
    for mine, theirs in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_weights_that_change_are_seen(module: Any) -> None:
    program = compiled(module)
    x = batch()
    with torch.no_grad():
        for change in (
            lambda: None,
            lambda: module[0].weight.mul_(1.5),
            lambda: module.load_state_dict({k: v * 0.5 for k, v in module.state_dict().items()}),
            lambda: setattr(module[3], "weight", nn.Parameter(torch.randn_like(module[3].weight))),
            lambda: None,
        ):
            change()
            torch.testing.assert_close(program(x), module(x))


def test_inputs_of_any_strides_places_and_no_elements_are_read() -> None:
    torch._dynamo.reset()
    program = compiled(lambda x: (x * 2).transpose(0, 1) + 1)
    memory = torch.randn(6 * 8 + 1, device="cuda")
    for x in (
        torch.randn(6, 8, device="cuda").T,
        torch.randn(8, 12, device="cuda")[:, ::2],
        torch.ones(1, 6).cuda(),
        memory[1:].view(8, 6),
    ):
        torch.testing.assert_close(program(x), (x * 2).transpose(0, 1) + 1)
    assert program(torch.ones(0, 6, device="cuda")).shape == (6, 0)


def test_sizes_may_be_any(module: Any) -> None:
    program = compiled(lambda x: (module(x) * x.shape[0]).sum(0).expand(x.shape[0] + 1, 4), dynamic=True)
    with torch.no_grad():
        for size in (4, 4, 9, 9, 4, 2, 30, 9):
            x = batch(size)
            torch.testing.assert_close(program(x), (module(x) * size).sum(0).expand(size + 1, 4))


def test_a_batch_of_none_is_computed_by_torch(module: Any) -> None:
    program = compiled(lambda x: module(x).sum(0), dynamic=True)
    with torch.no_grad():
        for size in (4, 5, 0, 4):
            x = batch(size)
            torch.testing.assert_close(program(x), module(x).sum(0))


def test_sums_are_the_same_at_each_call() -> None:
    torch._dynamo.reset()
    program = compiled(lambda x: (x.sum(), x.sum(0), x.sum(1)))
    x = torch.randn(1000, 1000, device="cuda")
    first = program(x)
    for _ in range(5):
        assert all(map(torch.equal, program(x), first))


def test_numbers_that_are_not_finite_are_sorted() -> None:
    torch._dynamo.reset()
    x = torch.tensor([3.0, torch.nan, -torch.inf, torch.inf, -1.0, torch.finfo(torch.float32).max], device="cuda")
    for descending in (False, True):
        got = compiled(lambda x, d=descending: x.sort(descending=d))(x)
        wanted = x.sort(descending=descending)
        torch.testing.assert_close(got[0], wanted[0], equal_nan=True)
        assert torch.equal(got[1], wanted[1])


def test_parts_of_unequal_sizes_are_split() -> None:
    torch._dynamo.reset()
    program = compiled(lambda x: tuple(part * 2 for part in (*x.split([2, 3, 1]), *x.chunk(2, 1))))
    x = torch.randn(6, 4, device="cuda")
    for mine, theirs in zip(program(x), (*x.split([2, 3, 1]), *x.chunk(2, 1)), strict=True):
        torch.testing.assert_close(mine, theirs * 2)


def test_whole_numbers_and_doubles_keep_their_bits() -> None:
    torch._dynamo.reset()
    program = compiled(lambda i, d: (i * 3 + 1, d / 3, i.amax(), i.int().sum()))
    i, d = torch.tensor([2**40 + 1, -(2**50)], device="cuda"), torch.randn(5, dtype=torch.float64, device="cuda")
    got = program(i, d)
    assert torch.equal(got[0], i * 3 + 1)
    torch.testing.assert_close(got[1], d / 3)
    assert torch.equal(got[2], i.amax())
    assert torch.equal(got[3], i.int().sum())


def test_indices_are_read_on_the_device() -> None:
    torch._dynamo.reset()
    table = nn.Embedding(100, 32).cuda()
    program = compiled(lambda i, x: (table(i).sum(-1), x[i], x.gather(0, i), x.index_put((i[0],), x[0])))
    at, x = torch.randint(0, 100, (4, 7), device="cuda"), torch.randn(100, 7, device="cuda")
    with torch.no_grad():
        got = program(at, x)
        wanted = (table(at).sum(-1), x[at], x.gather(0, at), x.index_put((at[0],), x[0]))
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(
    "program",
    [
        "table[i]",
        "table.gather(0, i[:, None])",
        "table.index_put((i,), table[0])",
        "table.index_copy(0, i, table[:2])",
    ],
)
def test_an_index_that_is_out_of_range_ends_as_in_eager(program: str) -> None:
    code = f"""
import torch, fairlead
table = torch.randn(4, 2, device="cuda")
run = fairlead.compile(lambda i: {program}, backend="onnxrt", fallback=())
run(torch.tensor([1, 3], device="cuda"))
torch.cuda.synchronize()
print("in range")
run(torch.tensor([1, 4], device="cuda"))
torch.cuda.synchronize()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout == "in range\n", ended.stderr
    assert ended.returncode
    assert "device-side assert" in ended.stderr


def test_what_has_no_kernel_on_cuda_is_left_to_others() -> None:
    torch._dynamo.reset()
    program = fairlead.compile(lambda x: torch.tan(x).exp(), backend="onnxrt")
    x = torch.rand(8, device="cuda")
    torch.testing.assert_close(program(x), torch.tan(x).exp())
    (node,) = [n for n in program.fairlead.placement.graphs[0].nodes if n.op == "aten.tan.default"]
    assert (node.backend, node.reason) == ("eager", "ONNX Runtime on CUDA has no Tan for f32")


def test_what_is_stored_runs_when_it_is_loaded() -> None:
    from fairlead.ir import Builder, DType, TensorType
    from fairlead_onnxrt import OnnxRuntimeOptions, backend

    b = Builder("g")
    table, at = (b.input(TensorType(d, s, device="cuda:0")) for d, s in ((DType.f32, (5, 3)), (DType.i64, (2,))))
    b.output(b.op("aten.index_select.default", table, 0, at))
    graph, x, i = b.graph(), torch.randn(5, 3, device="cuda"), torch.tensor([4, 0], device="cuda")
    stored = backend.dump(backend.compile(graph, OnnxRuntimeOptions(), {}))
    assert torch.equal(backend.load(stored, graph, OnnxRuntimeOptions(), {})([x, i])[0], x[i])


def test_the_probe_says_cuda() -> None:
    from fairlead_onnxrt import backend

    assert backend.probe().devices == ("cpu", "cuda")
