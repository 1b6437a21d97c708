"""Memory and order on CUDA: whose memory is read and written, and when; what is told where there is too little."""

from __future__ import annotations

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
    return fairlead.compile(program, backend="onnxrt", fallback=(), **how)


def batch(size: int = 8) -> torch.Tensor:
    return torch.randn(size, 16, device="cuda")


def test_weights_are_held_once() -> None:
    torch._dynamo.reset()
    module = nn.Linear(16384, 16384, bias=False).eval().cuda()  # 1 GiB
    x = torch.randn(2, 16384, device="cuda")
    with torch.no_grad():
        small = nn.Linear(16, 4).cuda()
        compiled(small)(batch())  # what ONNX Runtime and cuBLAS take for themselves
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.mem_get_info()[0]
        torch.testing.assert_close(compiled(module)(x), module(x))
        torch.cuda.synchronize()
    assert before - torch.cuda.mem_get_info()[0] < 512 << 20


def test_what_torch_has_not_written_yet_is_waited_for(module: Any) -> None:
    """And what ONNX Runtime has not: each call and what follows it are put on the stream while it sleeps."""
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
                got.append(program(x * k).clone())
        torch.cuda.synchronize()
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_memory_that_is_still_read_is_not_given_to_torch() -> None:
    torch._dynamo.reset()
    program = compiled(lambda x: (x @ x @ x @ x).sum(0))
    inputs = [torch.randn(2048, 2048, device="cuda") for _ in range(4)]
    wanted = [(x @ x @ x @ x).sum(0) for x in inputs]
    program(inputs[0])
    torch.cuda.synchronize()
    got = []
    for x in inputs:
        got.append(program(x.clone().T.contiguous().T))  # a copy for the session is made and dropped within the call
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


@pytest.mark.parametrize("dynamic", [False, True])
def test_nothing_is_copied_to_the_host_or_from_it(module: Any, dynamic: bool) -> None:
    program = compiled(lambda x, s: module(x) * s, dynamic=dynamic)
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


def test_the_model_that_runs_copies_nothing_to_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path))
    torch._dynamo.reset()
    module = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0).eval().cuda()
    program = compiled(lambda x: module(x).argmax(-1), dynamic=True)
    x = torch.randn(2, 5, 32, device="cuda")
    with torch.no_grad():
        assert torch.equal(program(x), module(x).argmax(-1))
    written = [path.read_text() for path in tmp_path.rglob("*.optimized.onnx.txt")]
    assert written
    assert not [text for text in written if "Memcpy" in text]


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


def test_too_little_memory_is_torchs_error_and_says_what_was_run() -> None:
    torch._dynamo.reset()
    limits = {"provider_options": {"CUDAExecutionProvider": {"gpu_mem_limit": str(64 << 20)}}}
    program = compiled(lambda x: (x @ x).exp() @ x, options=limits)
    small = torch.randn(64, 64, device="cuda") / 9
    torch.testing.assert_close(program(small), (small @ small).exp() @ small, rtol=1e-3, atol=1e-3)
    with pytest.raises(torch.OutOfMemoryError, match="ONNX Runtime ran out of memory on cuda:0 with graph @"):
        program(torch.zeros(8192, 8192, device="cuda"))


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
