"""XLA on CUDA: torch's memory as it is, the order of streams, and whose memory results are in."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
import torch
from torch import nn

import fairlead
from fairlead.errors import RunError

pytestmark = pytest.mark.gpu


@pytest.fixture
def module() -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4)).eval().cuda()


def compiled(program: Any, **how: Any) -> Any:
    return fairlead.compile(program, backend="openxla", fallback=(), **how)


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


def test_products_are_of_whole_float32_numbers() -> None:
    torch._dynamo.reset()
    a, b = (torch.randn(512, 512, device="cuda") for _ in range(2))
    got = compiled(torch.matmul)(a, b)
    exact = a.double() @ b.double()
    assert (got - exact).abs().max() < 1e-3  # with nineteen bits it is 2e-2


def test_a_convolution_is_of_whole_float32_numbers() -> None:
    torch._dynamo.reset()
    conv = nn.Conv2d(64, 64, 3, padding=1).eval().cuda()
    x = torch.randn(4, 64, 16, 16, device="cuda")
    with torch.no_grad():
        got = compiled(conv)(x)
        exact = copy.deepcopy(conv).double()(x.double())
    assert (got - exact).abs().max() < 1e-4


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


def test_what_torch_has_not_written_yet_is_waited_for(module: Any) -> None:
    """And what XLA has not: each call and what follows it are put on the stream while it sleeps."""
    program = compiled(module)
    with torch.no_grad():
        program(batch(4096))
        for _ in range(5):
            source = batch(4096)
            x = torch.zeros_like(source)
            torch.cuda.synchronize()
            torch.cuda._sleep(20_000_000)
            x.copy_(source)
            got = program(x) + 1
            x.zero_()  # after it was read
            torch.testing.assert_close(got, module(source) + 1)


@pytest.mark.parametrize("sleeps", [False, True])
def test_streams_take_turns(module: Any, sleeps: bool) -> None:
    program = compiled(module)
    x = batch(4096)
    with torch.no_grad():
        wanted = [module(x * k) for k in range(12)]
        program(x)
        streams = [torch.cuda.Stream() for _ in range(3)]
        torch.cuda.synchronize()
        got = []
        for k in range(12):
            with torch.cuda.stream(streams[k % 3]):
                if sleeps and k % 2:
                    torch.cuda._sleep(20_000_000)
                got.append(program(x * k).clone())  # the result's memory is XLA's again before it is read
        torch.cuda.synchronize()
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_memory_that_torch_still_reads_is_not_given_to_the_next_call(module: Any) -> None:
    program = compiled(module)
    inputs = [batch(4096) for _ in range(8)]
    with torch.no_grad():
        wanted = [module(x) for x in inputs]
        program(inputs[0])
        torch.cuda.synchronize()
        got = []
        for x in inputs:
            result = program(x)
            torch.cuda._sleep(10_000_000)
            got.append(result * 1)
            del result
        torch.cuda.synchronize()
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_memory_that_xla_still_reads_is_not_given_to_torch() -> None:
    torch._dynamo.reset()
    program = compiled(lambda x: (x @ x @ x @ x).sum(0))
    inputs = [torch.randn(2048, 2048, device="cuda") for _ in range(4)]
    wanted = [(x @ x @ x @ x).sum(0) for x in inputs]
    program(inputs[0])
    torch.cuda.synchronize()
    got = []
    for x in inputs:
        got.append(program(x.clone()))
        torch.empty_like(x).fill_(torch.nan)  # takes what the clone had
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=10.0)


def test_threads_take_turns(module: Any) -> None:
    program = compiled(module)
    inputs = [batch() for _ in range(8)]
    with torch.no_grad():
        wanted = [module(x) for x in inputs]
        program(inputs[0])
    torch.cuda.synchronize()
    found: dict[tuple[int, int], torch.Tensor] = {}

    def work(index: int) -> None:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(10):
                found[index, turn] = program(inputs[index])
            torch.cuda.current_stream().synchronize()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    for (index, _), got in found.items():
        torch.testing.assert_close(got, wanted[index])


def test_nothing_is_copied_to_the_host_or_from_it(module: Any) -> None:
    program = compiled(lambda x, s: module(x) * s)
    x, scale = batch(), torch.tensor(3.0)
    with torch.no_grad():
        for _ in range(3):
            got = program(x, scale)
        torch.testing.assert_close(got, module(x) * 3)
        torch.cuda.synchronize()
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=kinds) as profile:
            program(x, scale)
            torch.cuda.synchronize()
    names = {event.key for event in profile.key_averages()}
    assert not [name for name in names if "DtoH" in name or "HtoD" in name]
    assert not {"cudaStreamSynchronize", "cudaEventSynchronize"} & names


def test_an_input_that_does_not_begin_where_xla_reads_is_copied() -> None:
    torch._dynamo.reset()
    program = compiled(lambda x: x * 2 + 1)
    memory = torch.randn(65, device="cuda")
    torch.testing.assert_close(program(memory[1:]), memory[1:] * 2 + 1)
    torch.testing.assert_close(program(memory.double()[1:]), memory.double()[1:] * 2 + 1)


def test_inputs_of_any_strides_and_no_elements_are_read() -> None:
    torch._dynamo.reset()
    program = compiled(lambda x: (x * 2).transpose(0, 1) + 1)
    for x in (torch.randn(6, 8, device="cuda").T, torch.randn(8, 12, device="cuda")[:, ::2], torch.ones(1, 6).cuda()):
        torch.testing.assert_close(program(x), (x * 2).transpose(0, 1) + 1)
    assert program(torch.ones(0, 6, device="cuda")).shape == (6, 0)


def test_sizes_may_be_any(module: Any) -> None:
    program = compiled(module, dynamic=True)
    with torch.no_grad():
        for size in (4, 4, 9, 9, 4, 2, 30, 9):
            x = batch(size)
            torch.testing.assert_close(program(x), module(x))


def test_inputs_come_back_to_addresses_with_other_shapes_and_signs() -> None:
    """What was made of an input at an address is used for others there, where they lie alike."""
    program = compiled(lambda x, y: (x + y).sum(0))
    memory = torch.randn(4096, device="cuda")
    for size in (8, 4, 8, 1, 8):
        x, y = memory[: size * 16].view(size, 16), memory[64 : 64 + size * 16].view(size, 16)
        for _ in range(2):
            torch.testing.assert_close(program(x, y), (x + y).sum(0))
            memory.neg_()
    turned = memory.view(64, 64).t()[:8, :16]
    torch.testing.assert_close(program(turned, turned), 2 * turned.sum(0))
    negative = torch.view_as_complex(memory[:256].view(8, 16, 2)).conj().imag
    assert negative.is_neg()
    torch.testing.assert_close(program(negative, -negative + 1), torch.full((16,), 8.0, device="cuda"))


def test_an_inputs_memory_is_not_kept() -> None:
    program = compiled(lambda x: x.sum())
    program(torch.ones(1 << 20, device="cuda"))
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        x = torch.randn(1 << 20, device="cuda")
        program(x)
        del x
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before + 4096


def test_whole_numbers_and_doubles_keep_their_bits() -> None:
    torch._dynamo.reset()
    program = compiled(lambda i, d: (i * 3 + 1, d / 3))
    i, d = torch.tensor([2**40, -(2**50)], device="cuda"), torch.randn(5, dtype=torch.float64, device="cuda")
    got = program(i, d)
    assert torch.equal(got[0], i * 3 + 1)
    torch.testing.assert_close(got[1], d / 3)


def test_a_language_model_reads_its_embedding_without_waiting() -> None:
    torch._dynamo.reset()
    table = nn.Embedding(100, 32).cuda()
    program = compiled(lambda i: table(i).sum(-1))
    at = torch.randint(0, 100, (4, 7), device="cuda")
    with torch.no_grad():
        torch.testing.assert_close(program(at), table(at).sum(-1))


def test_several_results_are_not_waited_for() -> None:
    program = compiled(lambda x: (x + 1, x * 2, x.sum()))
    x = torch.randn(64, device="cuda")
    program(x)
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)
    got = program(x)
    assert not torch.cuda.current_stream().query(), "the call has waited for the device"
    for mine, theirs in zip(got, (x + 1, x * 2, x.sum()), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_an_index_that_is_out_of_range_ends_as_in_eager() -> None:
    code = """
import torch, fairlead
table = torch.nn.Embedding(4, 2).cuda()
run = fairlead.compile(lambda i: table(i), backend="openxla", fallback=())
with torch.no_grad():
    run(torch.tensor([1, 4], device="cuda"))
torch.cuda.synchronize()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode
    assert "device-side assert" in ended.stderr


def test_the_users_memory_is_left_to_them() -> None:
    code = """
import torch, fairlead
model = torch.nn.Linear(8, 8).cuda()
before = torch.cuda.mem_get_info()[0]
with torch.no_grad():
    fairlead.compile(model, backend="openxla", fallback=())(torch.ones(2, 8, device="cuda"))
torch.cuda.synchronize()
print(before - torch.cuda.mem_get_info()[0])
"""
    bare = {name: value for name, value in os.environ.items() if "PREALLOCATE" not in name}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=bare)
    assert int(ended.stdout) < 4 << 30


def test_memory_is_given_back(module: Any) -> None:
    program = compiled(module)
    with torch.no_grad():
        for _ in range(3):
            program(batch(4096))
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
        for _ in range(200):
            program(batch(4096))
        torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before[0] + (1 << 20)
    assert torch.cuda.mem_get_info()[0] >= before[1] - (64 << 20)


def test_a_recording_is_refused_with_the_reason(module: Any) -> None:
    program = compiled(module)
    x = batch()
    with torch.no_grad():
        program(x)
        with (
            pytest.raises(RunError, match="cannot become part of a CUDA graph"),
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            program(x)
        torch.testing.assert_close(program(x), module(x))


def test_what_is_stored_runs_when_it_is_loaded() -> None:
    from fairlead.ir import Builder, DType, TensorType
    from fairlead_openxla import OpenXLAOptions, backend

    b = Builder("g")
    b.output(b.op("aten.neg.default", b.input(TensorType(DType.f32, (3,), device="cuda:0"))))
    graph, x = b.graph(), torch.randn(3, device="cuda")
    stored = backend.dump(backend.compile(graph, OpenXLAOptions(), {}))
    assert torch.equal(backend.load(stored, graph, OpenXLAOptions(), {})([x])[0], -x)
