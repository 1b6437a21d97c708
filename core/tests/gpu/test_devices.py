"""The rules of devices: where tensors are, in what order work is done there, and whose random numbers are drawn."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import fairlead
from fairlead.errors import DeviceError
from fairlead.interpret import in_clean_thread

pytestmark = pytest.mark.gpu

BACKENDS = ("eager", "inductor", "cudagraphs")


@pytest.fixture(autouse=True)
def _exact_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    torch._dynamo.reset()


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.dropout = nn.Linear(8, 32), nn.Linear(32, 8), nn.Dropout(0.4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.down(self.dropout(torch.relu(self.up(x))))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_runs_where_it_is(backend: str) -> None:
    module = Mlp().eval().cuda()
    compiled = fairlead.compile(module, backend=backend, fallback=())
    x = torch.randn(4, 8, device="cuda")
    got = compiled(x)
    assert got.device == x.device
    torch.testing.assert_close(got, module(x))
    assert compiled.fairlead.placement.native_share == 1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_eagers(backend: str) -> None:
    module = Mlp().eval().cuda()
    twin = copy.deepcopy(module)
    compiled = fairlead.compile(module, backend=backend, fallback=())
    x = torch.randn(4, 8, device="cuda")
    compiled(x).square().sum().backward()
    twin(x).square().sum().backward()
    for mine, theirs in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_dropout_drops_what_eager_drops() -> None:
    module = Mlp().train().cuda()
    compiled = fairlead.compile(module, backend="eager")
    x = torch.randn(64, 8, device="cuda")
    for seed in range(3):
        torch.manual_seed(seed)
        wanted, state = module(x), torch.cuda.get_rng_state()
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(x), wanted)
        assert torch.equal(torch.cuda.get_rng_state(), state)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_on_the_cpu_meet_tensors_on_the_device(backend: str) -> None:
    def program(x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * scale + 1, scale * 2

    compiled = fairlead.compile(program, backend=backend)
    x, scale = torch.randn(5, device="cuda"), torch.tensor(0.5)
    got, wanted = compiled(x, scale), program(x, scale)
    assert [t.device for t in got] == [t.device for t in wanted]
    torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_graph_may_be_on_several_devices(backend: str) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = x.relu() + y.to(x.device).exp()
        return both * 2, both.cpu() - y

    compiled = fairlead.compile(program, backend=backend)
    x, y = torch.randn(3, 4, device="cuda"), torch.randn(3, 4)
    got, wanted = compiled(x, y), program(x, y)
    assert [t.device for t in got] == [t.device for t in wanted]
    torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_work_is_done_in_the_order_of_the_current_stream(backend: str) -> None:
    """What a long kernel on the stream of the caller makes is there when the program reads it, at first too."""
    module = Mlp().eval().cuda()
    x = torch.randn(2048, 8, device="cuda")
    wanted = module(x * 3)
    compiled = fairlead.compile(module, backend=backend)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            torch.cuda._sleep(50_000_000)
            got = compiled(x * 3)
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(got, wanted)


def test_a_compiling_thread_has_the_callers_device_and_stream() -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert in_clean_thread(torch.cuda.current_stream) == stream
        assert in_clean_thread(torch.cuda.current_device) == torch.cuda.current_device()
    assert in_clean_thread(torch.cuda.current_stream) == torch.cuda.current_stream()


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_share_a_program(backend: str) -> None:
    module = Mlp().eval().cuda()
    compiled: Callable[..., Any] = fairlead.compile(module, backend=backend)
    inputs = [torch.randn(4, 8, device="cuda") for _ in range(4)]
    found: dict[int, torch.Tensor] = {}

    def work(index: int) -> None:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            found[index] = compiled(inputs[index])
            torch.cuda.current_stream().synchronize()

    with torch.no_grad():
        compiled(inputs[0])
    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, x in enumerate(inputs):
        torch.testing.assert_close(found[index], module(x))


def test_a_backend_of_the_cpu_declines_with_the_reason() -> None:
    backend = "openvino"
    pytest.importorskip(backend)
    x = torch.randn(4, 8, device="cuda")
    module = Mlp().eval().cuda()
    compiled = fairlead.compile(module, backend=backend, fallback=("eager",))
    torch.testing.assert_close(compiled(x), module(x))
    assert {d.reason for d in compiled.fairlead.placement.declines} == {"device cuda"}
    with pytest.raises(DeviceError) as raised:
        fairlead.compile(module, backend=backend, fallback=())(x)
    assert len(str(raised.value).splitlines()) == 3


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two devices")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_device_that_is_not_the_current_one(backend: str) -> None:
    module = Mlp().eval().to("cuda:1")
    compiled = fairlead.compile(module, backend=backend, fallback=())
    x = torch.randn(4, 8, device="cuda:1")
    got = compiled(x)
    assert got.device == x.device
    torch.testing.assert_close(got, module(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("backend", BACKENDS)
def test_attention_learns_through_the_devices_own_kernels(backend: str, dtype: torch.dtype) -> None:
    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    given = [torch.randn(2, 4, 64, 32, device="cuda", dtype=dtype).requires_grad_() for _ in range(3)]
    twins = [x.detach().clone().requires_grad_() for x in given]
    compiled = fairlead.compile(program, backend=backend, fallback=())
    got, wanted = compiled(*given), program(*twins)
    torch.testing.assert_close(got, wanted)
    got.square().sum().backward()
    wanted.square().sum().backward()
    for mine, theirs in zip(given, twins, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    assert compiled.fairlead.placement.native_share == 1.0


def test_a_checkpoint_drops_the_same_again() -> None:
    def program(x: torch.Tensor) -> Any:
        dropped = lambda y: torch.dropout(torch.tanh(y * 2), 0.5, True) * y  # noqa: E731
        return torch.utils.checkpoint.checkpoint(dropped, x, use_reentrant=False)

    x = torch.randn(256, device="cuda", requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    compiled = fairlead.compile(program, backend="eager", fallback=())
    torch.manual_seed(0)
    compiled(x).sum().backward()
    torch.manual_seed(0)
    program(twin).sum().backward()
    torch.testing.assert_close(x.grad, twin.grad)
