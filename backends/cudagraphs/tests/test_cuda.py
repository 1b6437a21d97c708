"""Recordings on a device: random numbers, weights, sizes, streams, threads, and whose memory results are in."""

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
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4)).eval().cuda()


def compiled(program: Any, **how: Any) -> Any:
    return fairlead.compile(program, backend="cudagraphs", fallback=(), **how)


def batch(size: int = 8) -> torch.Tensor:
    return torch.randn(size, 16, device="cuda")


def test_results_are_eagers_and_are_kept(module: Any) -> None:
    program = compiled(module)
    inputs = [batch() for _ in range(6)]
    with torch.no_grad():
        results = [program(x) for x in inputs]
        for got, x in zip(results, inputs, strict=True):
            torch.testing.assert_close(got, module(x), rtol=0, atol=0)
    assert program.fairlead.placement.native_share == 1.0


def test_kernels_are_replayed_and_not_launched_again(module: Any) -> None:
    program = compiled(module)
    with torch.no_grad():
        for _ in range(3):
            program(batch())
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            program(batch())
    names = {event.key for event in profile.key_averages()}
    assert not {"aten::addmm", "aten::gelu", "aten::native_layer_norm"} & names


def test_random_numbers_are_eagers_replay_after_replay() -> None:
    torch._dynamo.reset()

    def drawn(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x * 2, 0.4, training=True) + torch.randn_like(x)

    program = compiled(drawn)
    torch.manual_seed(3)
    wanted = [drawn(torch.ones(1000, device="cuda")) for _ in range(5)]
    state = torch.cuda.get_rng_state()
    torch.manual_seed(3)
    got = [program(torch.ones(1000, device="cuda")) for _ in range(5)]
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    assert torch.equal(torch.cuda.get_rng_state(), state)
    assert len({float(x.sum()) for x in got}) == 5


def test_weights_that_change_are_seen(module: Any) -> None:
    program = compiled(module)
    x = batch()
    with torch.no_grad():
        for change in (
            lambda: None,
            lambda: None,
            lambda: module[0].weight.mul_(1.5),
            lambda: module[0].weight.data.add_(1),
            lambda: module.load_state_dict({k: v * 0.5 for k, v in module.state_dict().items()}),
            lambda: setattr(module[3], "weight", nn.Parameter(torch.randn_like(module[3].weight))),
            lambda: None,
            lambda: None,
        ):
            change()
            torch.testing.assert_close(program(x), module(x))


def test_a_buffer_counts_the_calls() -> None:
    torch._dynamo.reset()

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls: torch.Tensor
            self.register_buffer("calls", torch.zeros((), device="cuda"))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            return x * self.calls

    counting = Counting()
    program = compiled(counting)
    for count in range(1, 6):
        torch.testing.assert_close(program(torch.ones(3, device="cuda")), torch.full((3,), float(count), device="cuda"))
    assert int(counting.calls) == 5


def test_an_input_written_in_place_is_written() -> None:
    torch._dynamo.reset()
    program = compiled(lambda x: x.mul_(2).sum())
    for _ in range(4):
        x = torch.randn(64, device="cuda")
        wanted = x * 2
        got = program(x)
        torch.testing.assert_close(x, wanted)
        torch.testing.assert_close(got, wanted.sum())


def test_sizes_may_be_any(module: Any) -> None:
    program = compiled(module, dynamic=True, options={"recordings": 3})
    with torch.no_grad():
        for size in (4, 4, 9, 9, 4, 2, 2, 30, 30, 4, 9, 2, 30, *range(5, 25), 4):
            x = batch(size)
            torch.testing.assert_close(program(x), module(x))


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


def test_two_forwards_may_come_before_their_backwards(module: Any) -> None:
    twin = copy.deepcopy(module)
    program = compiled(module)
    for _ in range(3):
        inputs = [batch() for _ in range(2)]
        for run in (program, twin):
            sum(run(x).square().sum() for x in inputs).backward()
        for mine, theirs in zip(module.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-4)
        module.zero_grad()
        twin.zero_grad()


def assert_gradients_are_eagers(module: Any, inputs: list[torch.Tensor]) -> None:
    """Those that the parameters have; afterwards they have none."""
    got = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    sum(module(x).square().sum() for x in inputs).backward()
    for mine, p in zip(got, module.parameters(), strict=True):
        torch.testing.assert_close(mine, p.grad, rtol=1e-3, atol=1e-3)
    module.zero_grad()


def test_any_number_of_forwards_may_wait_for_their_backwards(module: Any) -> None:
    program = compiled(module)
    for count in (1, 1, 1, 3, 7, 7, 1):
        inputs = [batch() for _ in range(count)]
        results = [program(x) for x in inputs]
        for result in reversed(results):
            result.square().sum().backward()
        assert_gradients_are_eagers(module, inputs)


def test_a_graph_that_is_retained_keeps_what_it_saved(module: Any) -> None:
    program = compiled(module)
    for _ in range(4):
        inputs = [batch() for _ in range(2)]
        first = program(inputs[0]).square().sum()
        first.backward(retain_graph=True)
        program(inputs[1]).square().sum().backward()
        first.backward()
        assert_gradients_are_eagers(module, [inputs[0], inputs[0], inputs[1]])


def test_recordings_that_make_room_keep_what_they_lent(module: Any) -> None:
    program = compiled(module, options={"recordings": 1}, dynamic=True)
    for _ in range(4):
        inputs = [batch(size) for size in (8, 8, 24, 24, 8)]
        for x in inputs[:2]:
            program(x).square().sum().backward()
        held = [program(x).square().sum() for x in inputs[2:]]
        sum(held).backward()
        assert_gradients_are_eagers(module, inputs)


def test_recordings_made_later_do_not_write_over_what_is_lent(module: Any) -> None:
    last = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 4)).cuda()
    programs = compiled(last), compiled(module, dynamic=True)
    for size in (8, 8, 8, 40, 40, 40, 8):
        x = batch(size)
        programs[0](programs[1](x)).square().sum().backward()
        assert_gradients_are_eagers(nn.Sequential(module, last), [x])


def test_gradients_of_earlier_steps_are_kept(module: Any) -> None:
    program = compiled(module)
    inputs, found = [batch() for _ in range(5)], []
    for x in inputs:
        program(x).square().sum().backward()
        found.append([p.grad for p in module.parameters()])
        module.zero_grad()
    for x, gradients in zip(inputs, found, strict=True):
        for p, gradient in zip(module.parameters(), gradients, strict=True):
            p.grad = gradient
        assert_gradients_are_eagers(module, [x])


def test_what_a_forward_saves_is_read_where_it_is(module: Any) -> None:
    program = compiled(module)
    x = batch(1 << 16)
    saved = (1 << 16) * 64 * 4  # of which there are several
    for _ in range(4):
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        program(x).sum().backward()
        peak = torch.cuda.max_memory_allocated() - before
        module.zero_grad()
    assert peak < saved


def test_streams_take_turns(module: Any) -> None:
    program = compiled(module)
    x = batch(4096)
    with torch.no_grad():
        wanted = [module(x * k) for k in range(8)]
        for _ in range(3):
            program(x)
        streams = [torch.cuda.Stream() for _ in range(2)]
        torch.cuda.synchronize()
        got = []
        for k in range(8):
            with torch.cuda.stream(streams[k % 2]):
                if k % 2:
                    torch.cuda._sleep(20_000_000)
                got.append(program(x * k))
        torch.cuda.synchronize()
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)


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


def test_what_waits_runs_elsewhere_with_the_reason_and_the_line() -> None:
    torch._dynamo.reset()

    def program(x: torch.Tensor) -> torch.Tensor:
        y = (x * 2).relu()
        return torch.linalg.inv(y @ y.T + torch.eye(4, device=x.device)) * 3

    run = fairlead.compile(program, backend="cudagraphs", fallback=("eager",))
    for _ in range(4):
        x = torch.randn(4, 4, device="cuda")
        torch.testing.assert_close(run(x), program(x), rtol=1e-4, atol=1e-4)
    (decline, *_) = run.fairlead.placement.declines
    assert decline.reason == "it waits for a value on the device"
    assert decline.location is not None
    assert decline.location.file.endswith("test_cuda.py")


def test_a_recording_that_fails_harms_nobody(module: Any) -> None:
    """An op that waits, and that nobody told the backend of."""
    from fairlead.ir import Builder, DType, TensorType
    from fairlead_cudagraphs import CudaGraphsOptions, backend

    program = compiled(module)
    with torch.no_grad():
        for _ in range(3):
            program(batch())
    b = Builder("waits")
    count = TensorType(DType.i64, (3, 1), device="cuda:0")
    b.output(b.op("aten.nonzero.default", b.input(TensorType(DType.f32, (3,), device="cuda:0")), to=count))
    waits = backend.compile(b.graph(), CudaGraphsOptions(warm_ups=0), {})
    with pytest.raises(RuntimeError, match=r"aten\.nonzero\.default cannot be recorded, at an unknown line"):
        waits([torch.ones(3, device="cuda")])
    torch.manual_seed(1)
    assert torch.equal(torch.rand(4, device="cuda"), (torch.manual_seed(1), torch.rand(4, device="cuda"))[1])
    with torch.no_grad():
        for _ in range(4):
            x = batch()
            torch.testing.assert_close(program(x), module(x))


def test_programs_come_and_go(module: Any) -> None:
    for _ in range(4):
        torch._dynamo.reset()
        program = compiled(module)
        with torch.no_grad():
            for _ in range(3):
                x = batch()
                torch.testing.assert_close(program(x), module(x))
        del program


def test_it_may_be_part_of_the_callers_own_recording(module: Any) -> None:
    program = compiled(module)
    x = batch()
    with torch.no_grad():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                program(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = program(x)
        x.copy_(batch())
        graph.replay()
        torch.testing.assert_close(out, module(x))


def test_memory_is_given_back(module: Any) -> None:
    program = compiled(module)
    with torch.no_grad():
        for _ in range(3):
            program(batch())
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for _ in range(50):
            program(batch())
        torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before


def test_a_backward_reads_weights_where_they_are() -> None:
    """Their transposes too, which its forward saves for it: no copy for each layer."""
    deep = nn.Sequential(*(nn.Linear(256, 256) for _ in range(9))).cuda()
    compiled, x = fairlead.compile(deep, backend="cudagraphs", fallback=()), torch.randn(8, 256, device="cuda")
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
