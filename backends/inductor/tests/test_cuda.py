"""Inductor on CUDA: its options, and what its recordings leave to their caller."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
import torch
from torch import nn

import fairlead

pytestmark = pytest.mark.gpu


@pytest.fixture
def module() -> Any:
    torch._dynamo.reset()
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4)).eval().cuda()


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_results_of_earlier_calls_are_kept_in_every_mode(module: Any, mode: str) -> None:
    compiled = fairlead.compile(module, backend="inductor", mode=mode, fallback=())
    inputs = [torch.randn(8, 16, device="cuda") for _ in range(6)]
    with torch.no_grad():
        results = [compiled(x) for x in inputs]
        for got, x in zip(results, inputs, strict=True):
            torch.testing.assert_close(got, module(x), rtol=1e-3, atol=1e-3)


def test_recordings_are_replayed_in_another_thread(module: Any) -> None:
    compiled = recorded(module)
    x = torch.randn(8, 16, device="cuda")
    found: list[torch.Tensor] = []

    def work() -> None:
        with torch.no_grad():
            found.extend(compiled(x) for _ in range(3))
        torch.cuda.synchronize()

    with torch.no_grad():
        for _ in range(3):
            compiled(x)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for got in found:
        torch.testing.assert_close(got, module(x), rtol=1e-3, atol=1e-3)
    assert len(found) == 3


def recorded(module: Any) -> Any:
    return fairlead.compile(module, backend="inductor", mode="reduce-overhead", fallback=())


def assert_gradients_are_eagers(module: Any, *inputs: torch.Tensor) -> None:
    """Those that the parameters have; afterwards they have none."""
    got = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    sum(module(x).square().sum() for x in inputs).backward()
    for mine, p in zip(got, module.parameters(), strict=True):
        torch.testing.assert_close(mine, p.grad, rtol=1e-3, atol=1e-3)
    module.zero_grad()


def test_recordings_learn(module: Any) -> None:
    compiled = recorded(module)
    for _ in range(4):
        x = torch.randn(8, 16, device="cuda")
        compiled(x).square().sum().backward()
        assert_gradients_are_eagers(module, x)


def lending(module: Any) -> Any:
    options = {"lend_results": True}
    return fairlead.compile(module, backend="inductor", mode="reduce-overhead", options=options, fallback=())


def test_lent_gradients_lie_where_those_of_the_last_step_lay(module: Any) -> None:
    compiled = lending(module)
    places = []
    for _ in range(6):
        x = torch.randn(8, 16, device="cuda")
        compiled(x).square().sum().backward()
        places.append(tuple(p.grad.data_ptr() for p in module.parameters()))
        assert_gradients_are_eagers(module, x)
    assert places[-1] == places[-2]


def test_lent_results_lie_where_the_next_ones_do(module: Any) -> None:
    compiled = lending(module)
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(8, 16, device="cuda")
            result = compiled(x)
            torch.testing.assert_close(result, module(x), rtol=1e-3, atol=1e-3)
        assert compiled(x).data_ptr() == result.data_ptr()


def test_statistics_are_written_within_recordings() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).cuda()
    twin = copy.deepcopy(model)
    compiled = recorded(model)
    for _ in range(5):
        x = torch.randn(4, 3, 8, 8, device="cuda")
        compiled(x).sum().backward()
        twin(x)
    for (name, mine), theirs in zip(model.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3, msg=name)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_weights_may_move_to_odd_addresses(module: Any, mode: str) -> None:
    compiled = fairlead.compile(module, backend="inductor", mode=mode, fallback=())
    x = torch.randn(8, 16, device="cuda")
    with torch.no_grad():
        for offset in (0, 0, 1, 3, 0):
            for parameter in module.parameters():
                memory = torch.randn(parameter.numel() + offset, device="cuda")
                parameter.data = memory[offset:].view(parameter.shape)
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_statistics_may_move_to_odd_addresses(mode: str) -> None:
    torch._dynamo.reset()
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).cuda()
    twin = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend="inductor", mode=mode, fallback=())
    for offset in (0, 0, 1, 1, 3, 0):
        for buffer in (model[1].running_mean, model[1].running_var):
            memory = torch.zeros(8 + offset, device="cuda")
            memory[offset:] = buffer
            buffer.data = memory[offset:]
        x = torch.randn(4, 3, 8, 8, device="cuda")
        torch.testing.assert_close(compiled(x), twin(x), rtol=1e-3, atol=1e-3)
        for (name, mine), theirs in zip(model.named_buffers(), twin.buffers(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3, msg=name)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_weight_may_be_turned_over_where_it_is(mode: str) -> None:
    torch._dynamo.reset()
    layer = nn.Linear(16, 16).cuda()
    compiled = fairlead.compile(layer, backend="inductor", mode=mode, fallback=())
    x = torch.randn(8, 16, device="cuda")
    with torch.no_grad():
        for _ in range(2):
            for _ in range(4):
                torch.testing.assert_close(compiled(x), layer(x), rtol=1e-3, atol=1e-3)
            layer.weight.data = layer.weight.data.t()


def test_what_a_hook_gives_back_turned_over_is_read_as_it_lies() -> None:
    torch._dynamo.reset()
    layers = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)).cuda()
    twin = copy.deepcopy(layers)
    compiled = recorded(layers)

    def turned(x: torch.Tensor) -> torch.Tensor:
        return x.t().contiguous().t() if x.dim() == 2 else x

    for step in range(8):
        x = torch.randn(8, 16, device="cuda")
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, turned if step % 2 else lambda x: x)
        with hooks:
            compiled(x).square().sum().backward()
        twin(x).square().sum().backward()
        for mine, theirs in zip(layers.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-3)
        layers.zero_grad()
        twin.zero_grad()


@pytest.mark.parametrize("width", [50257, 1001])
def test_rows_of_odd_width_are_eagers(width: int) -> None:
    torch._dynamo.reset()
    head = nn.Linear(256, width, bias=False, device="cuda", dtype=torch.bfloat16)
    compiled = fairlead.compile(head, backend="inductor", fallback=())
    x = torch.randn(4, 128, 256, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        found = compiled(x)
        torch.testing.assert_close(found, head(x), rtol=2e-2, atol=2e-2)
    assert found.is_contiguous()


def test_products_are_rounded_before_they_are_added_to() -> None:
    compiled = fairlead.compile(lambda x, y: x * y - x * y, backend="inductor", fallback=())
    x, y = torch.randn(2, 4096, device="cuda")
    assert compiled(x, y).count_nonzero() == 0


def test_frozen_weights_are_seen_when_they_change(module: Any) -> None:
    compiled = fairlead.compile(module, backend="inductor", options={"config": {"freezing": True}}, fallback=())
    x = torch.randn(8, 16, device="cuda")
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-3, atol=1e-3)
            module[0].weight.mul_(1.5)


def test_weights_are_read_where_they_are() -> None:
    """Neither copied into the recording at a call, nor held there twice."""
    big = nn.Sequential(nn.Linear(2048, 2048), nn.Linear(2048, 2048)).eval().cuda()
    compiled, x = recorded(big), torch.randn(8, 2048, device="cuda")
    with torch.no_grad():
        for _ in range(4):
            compiled(x)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            compiled(x)
            torch.cuda.synchronize()
        kernels = [e for e in profile.events() if e.device_time_total > 0]
        copied = [e.name for e in kernels if "emcpy" in e.name or "copy" in e.name.lower()]
        assert len(copied) <= 2, f"the input, and the result: {copied}"
        big[0].weight.mul_(2)
        torch.testing.assert_close(compiled(x), big(x), rtol=1e-3, atol=1e-3)
        big[0].weight = nn.Parameter(torch.randn_like(big[0].weight) / 50)
        torch.testing.assert_close(compiled(x), big(x), rtol=1e-3, atol=1e-3)


def test_two_forwards_wait_for_their_backwards(module: Any) -> None:
    compiled = recorded(module)
    for _ in range(4):
        first, second = (torch.randn(8, 16, device="cuda") for _ in range(2))
        losses = [compiled(x).square().sum() for x in (first, second)]
        for loss in reversed(losses):
            loss.backward()
        assert_gradients_are_eagers(module, first, second)


def test_a_forward_without_a_backward_leaves_the_next_one_right(module: Any) -> None:
    compiled = recorded(module)
    kept = [compiled(torch.randn(8, 16, device="cuda")) for _ in range(3)]
    values = [k.detach().clone() for k in kept]
    for _ in range(3):
        x = torch.randn(8, 16, device="cuda")
        compiled(x).square().sum().backward()
        assert_gradients_are_eagers(module, x)
    for k, value in zip(kept, values, strict=True):
        torch.testing.assert_close(k, value, rtol=0, atol=0)


def test_a_backward_reads_weights_where_they_are() -> None:
    """Their transposes too, which its forward saves for it: no copy for each layer."""
    deep = nn.Sequential(*(nn.Linear(256, 256) for _ in range(9))).cuda()
    compiled, x = recorded(deep), torch.randn(8, 256, device="cuda")
    for _ in range(4):
        deep.zero_grad()
        compiled(x).square().sum().backward()
    deep.zero_grad()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        compiled(x).square().sum().backward()
        torch.cuda.synchronize()
    copied = [e.name for e in profile.events() if e.name.startswith("Memcpy DtoD")]
    assert len(copied) <= 4, f"the input, the result, its gradient: {copied}"
    got = [p.grad.clone() for p in deep.parameters()]
    deep.zero_grad()
    deep(x).square().sum().backward()
    for mine, p in zip(got, deep.parameters(), strict=True):
        torch.testing.assert_close(mine, p.grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_inputs_may_lie_at_odd_addresses(mode: str) -> None:
    """What is written among them; the next call has them at even ones."""

    def scale(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y.mul_(3)
        return (x * y).sin()

    compiled = fairlead.compile(scale, backend="inductor", mode=mode, fallback=())
    for start in (1, 0, 1):
        x, y = (torch.randn(4097, device="cuda")[start : start + 4096] for _ in range(2))
        right = y * 3
        with torch.no_grad():
            torch.testing.assert_close(compiled(x, y), (x * right).sin())
        torch.testing.assert_close(y, right)


def test_a_step_takes_no_more_memory_than_torch_compiles() -> None:
    """A backward lets go of what was saved as it reads it."""
    x = torch.randn(4096, 1024, device="cuda")

    def peak(compiler: Any) -> int:
        module = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(12))).cuda()
        compiled = compiler(module)
        for _ in range(3):
            module.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            compiled(x).square().mean().backward()
        return torch.cuda.max_memory_allocated() - before

    ours, theirs = peak(lambda m: fairlead.compile(m, backend="inductor", fallback=())), peak(torch.compile)
    assert ours <= 1.02 * theirs


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_of_an_odd_width_have_no_gaps(mode: str, dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    head = nn.Linear(768, 50257, bias=False).eval().cuda().to(dtype)
    compiled = fairlead.compile(head, backend="inductor", mode=mode, fallback=())
    with torch.no_grad(), torch.profiler.profile() as profile:
        for _ in range(4):
            x = torch.randn(8, 512, 768, device="cuda").to(dtype)
            found, right = compiled(x), head(x)
            assert found.stride() == right.stride()
            torch.testing.assert_close(found, right, rtol=0.02, atol=1e-3)  # ATen adds up in another order
    called = {event.name for event in profile.events() or ()}
    assert ("fairlead_inductor::in_bands" in called) is (dtype is torch.bfloat16)


def test_dropout_in_place_trains() -> None:
    """It draws by another op than dropout does, of which torch's decomposition is bool."""
    x = torch.randn(64, 256, device="cuda", requires_grad=True)
    program: Any = fairlead.compile(
        lambda x: nn.functional.dropout(x.sin(), 0.5, inplace=True), backend="inductor", fallback=(), benchmark=False
    )
    y = program(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    kept = y != 0
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(gradient, torch.where(kept, 2 * x.cos(), 0.0).detach())
