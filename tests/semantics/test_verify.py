"""``verify``: calls that are compared with eager, which Part is named where one is wrong, and what it leaves alone."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import fairlead
from fairlead import ir
from fairlead.backend import Support
from fairlead.errors import AccuracyError, ArgumentError
from fairlead.registry import registry

from .test_failures import Faulty


@pytest.fixture(autouse=True)
def _files_go_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path))
    yield
    if "faulty" in registry.names():
        registry.unregister("faulty")


class Net(torch.nn.Module):
    """A layer, a dropout that draws, and indices that hang on the last bit."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 16)
        self.dropout = torch.nn.Dropout(0.3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.dropout(torch.nn.functional.gelu(self.linear(x)))
        return y, y.argmax(-1)


def _program(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    return (y + 1).relu()


def _off(on: Callable[[int], bool], by: float = 1e-3) -> Faulty:
    """A backend whose results are off in the calls that ``on`` says."""

    def on_run(call: int, out: list[torch.Tensor]) -> Sequence[Any]:
        return [t * (1 + by) if on(call) and t.is_floating_point() else t for t in out]

    backend = Faulty(on_run=on_run)
    registry.register(backend)
    return backend


def test_every_backend_agrees_in_inference_and_in_training(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    net = Net()
    arguments: dict[str, Any] = {"backend": backend, "fallback": "eager", "verify": "always"}
    with caplog.at_level(logging.WARNING, "fairlead.verify"):
        fairlead.compile(net, **arguments)(torch.randn(3, 8))[0].sum().backward()
        with torch.no_grad():
            fairlead.compile(net.eval(), **arguments)(torch.randn(3, 8))
    assert ("is not verified" in caplog.text) is (backend in ("inductor", "ipex"))  # which draw themselves


def test_a_wrong_part_is_named_with_its_line_and_can_be_bisected(tmp_path: Path) -> None:
    backend = _off(lambda call: True)
    backend.on_supports = lambda n: Support.no("no sin here") if "sin" in n.op else Support.yes()
    compiled = fairlead.compile(_program, backend="faulty", fallback="eager", verify="first")
    with pytest.raises(AccuracyError) as caught:
        compiled(torch.linspace(0.1, 1.0, 5))
    what, where, following = str(caught.value).splitlines()
    assert what.startswith("FL507: backend 'faulty' is wrong in Part inference_0_1 of 2 nodes: output 0")
    assert "is off by 1.0e-03, eager by " in what
    assert what.endswith("1.0e-05 is allowed")
    assert "test_verify.py" in where
    (path,) = tmp_path.glob("*.fir")
    assert following == f"  next: `fairlead bisect {path} --backend faulty` finds the smallest graph that shows it"
    file = ir.read(path)
    assert [n.op for n in file.graph.nodes] == ["aten.add.Tensor", "aten.relu.default"]
    assert bytes(file.constants(0)[0].data) == torch.linspace(0.1, 1.0, 5).sin().numpy().tobytes()


@pytest.mark.parametrize(("verify", "raises"), [("first", False), ("always", True), (0.5, True), (None, False)])
def test_first_is_the_first_call_and_always_is_every_one(verify: Any, raises: bool) -> None:
    _off(lambda call: call > 1)
    compiled = fairlead.compile(_program, backend="faulty", verify=verify)
    x = torch.ones(4)
    compiled(x)
    assert any(_is_caught(compiled, x) for _ in range(5)) is raises


def test_first_is_so_for_each_set_of_sizes_and_until_it_agrees() -> None:
    _off(lambda call: call in (2, 3))
    compiled = fairlead.compile(_program, backend="faulty", dynamic=True, verify="first")
    compiled(torch.ones(4))
    for _ in range(2):
        with pytest.raises(AccuracyError, match=r"\.fir --backend faulty --size \w+=5`"):
            compiled(torch.ones(5))
    compiled(torch.ones(5))


def test_a_share_of_calls_is_chosen_without_anybodys_generator() -> None:
    _off(lambda call: True)
    compiled = fairlead.compile(_program, backend="faulty", verify=0.25)
    x = torch.ones(4)
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    assert sum(_is_caught(compiled, x) for _ in range(100)) in range(23, 28)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert random.getstate() == python_state


def _is_caught(compiled: Any, x: torch.Tensor) -> bool:
    try:
        compiled(x)
    except AccuracyError:
        return True
    return False


def test_a_wrong_backward_is_named() -> None:
    _off(lambda call: True, by=1e-6)  # within what rounding does
    x = torch.rand(4, requires_grad=True)
    fairlead.compile(_program, backend="faulty", verify="always")(x).sum().backward()
    registry.unregister("faulty")
    torch._dynamo.reset()
    backend = _off(lambda call: False)
    y = fairlead.compile(_program, backend="faulty", verify="always")(x)
    backend.on_run = lambda call, out: [t + 0.1 for t in out]
    with pytest.raises(AccuracyError, match=r"in Part backward_1_0 .*gradient of output 0"):
        y.sum().backward()


def test_weights_that_are_not_those_of_now_are_noticed() -> None:
    layer = torch.nn.Linear(4, 4)
    compiled = fairlead.compile(layer, backend="onnxrt", verify="always")
    x = torch.ones(1, 4)
    with torch.no_grad():
        compiled(x)
        layer.weight.data.mul_(2)  # torch does not count this write
        with pytest.raises(AccuracyError, match=r"call refresh\(\)"):
            compiled(x)
        compiled.fairlead.refresh()
        torch.testing.assert_close(compiled(x), layer(x))


def test_indices_that_hang_on_a_rounding_are_right_and_others_are_not() -> None:
    def largest(x: torch.Tensor) -> torch.Tensor:
        return (x * x).argmax()

    backend = Faulty(on_run=lambda call, out: [1 - out[0]])
    registry.register(backend)
    compiled = fairlead.compile(largest, backend="faulty", verify="always")
    assert compiled(torch.tensor([1.0, 1.0])).item() == 1  # eager says 0
    with pytest.raises(AccuracyError, match="1 of 1 elements of output 0"):
        compiled(torch.tensor([1.0, 2.0]))


def test_a_verified_call_draws_eagers_numbers_once() -> None:
    net = Net()
    compiled = fairlead.compile(net, backend="onnxrt", verify="always")
    x = torch.randn(4, 8)
    torch.manual_seed(7)
    wanted = net(x)[0]
    state = torch.get_rng_state()
    torch.manual_seed(7)
    torch.testing.assert_close(compiled(x)[0], wanted)
    assert torch.equal(torch.get_rng_state(), state)


def test_torch_compile_takes_it_as_an_option() -> None:
    _off(lambda call: True)
    options = {"backend": "faulty", "verify": "first"}
    with pytest.raises(AccuracyError):
        torch.compile(_program, backend="fairlead", options=options)(torch.ones(4))


@pytest.mark.parametrize("verify", ["sometimes", 1, True, 1.5, -0.1, float("nan")])
def test_what_is_no_choice_of_calls_is_an_error(verify: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^FL203: verify is .*\n  from: fairlead.compile\n  next: pass "):
        fairlead.compile(_program, backend="eager", verify=verify)


@pytest.mark.parametrize("weights", ["watched", "constant"])
@pytest.mark.parametrize(("verify", "caught"), [("always", 40), (0.25, 10), ("first", 0), (None, 0)])
def test_a_frozen_program_is_compared_as_it_was_before(verify: Any, caught: int, weights: Any) -> None:
    """Also in the calls that pass by guards and AOTAutograd, from the third of a signature on."""
    wrong = False
    _off(lambda call: wrong)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    compiled = fairlead.compile(model, backend="faulty", fallback=(), verify=verify)
    x = torch.rand(3, 4)
    with torch.no_grad():
        compiled(x)
        with fairlead.freeze(compiled, weights=weights) as frozen:
            for _ in range(4):
                torch.testing.assert_close(compiled(x), model(x))
            wrong = True
            assert sum(_is_caught(compiled, x) for _ in range(40)) in range(caught - 1, caught + 2)
            wrong = False
            assert not _is_caught(compiled, x)
            assert frozen.misses == 0


def test_first_is_so_in_a_frozen_program_for_each_set_of_sizes_and_after_a_refresh() -> None:
    wrong = False
    _off(lambda call: wrong)
    model = torch.nn.Linear(4, 4).eval()
    compiled = fairlead.compile(model, backend="faulty", fallback=(), dynamic=True, verify="first")
    with torch.no_grad():
        for rows in (2, 3):
            compiled(torch.rand(rows, 4))
        with fairlead.freeze(compiled) as frozen:
            for _ in range(4):
                compiled(torch.rand(2, 4))
            wrong = True
            assert not _is_caught(compiled, torch.rand(2, 4))
            assert _is_caught(compiled, torch.rand(5, 4))  # sizes that were not compared yet
            frozen.refresh()
            assert _is_caught(compiled, torch.rand(2, 4))


def test_random_numbers_of_a_frozen_and_verified_program_are_eagers() -> None:
    """Comparing repeats the call, and leaves the generator as the call does."""
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5))  # draws, in training mode
    compiled = fairlead.compile(net, backend="onnxrt", fallback="eager", verify="always", rng="eager")
    x = torch.rand(4, 8)
    with torch.no_grad():
        compiled(x)
        with fairlead.freeze(compiled):
            for seed in range(5):
                torch.manual_seed(seed)
                got, after = compiled(x), torch.get_rng_state()
                torch.manual_seed(seed)
                torch.testing.assert_close(got, net(x))
                assert torch.equal(torch.get_rng_state(), after)


def test_a_call_that_nothing_was_compiled_for_is_eagers_and_has_nothing_to_compare() -> None:
    _off(lambda call: call > 1)
    compiled = fairlead.compile(_program, backend="faulty", dynamic=False, verify="always")
    compiled(torch.ones(4))
    with fairlead.freeze(compiled, miss="eager") as frozen:
        assert not _is_caught(compiled, torch.ones(5))
        assert _is_caught(compiled, torch.ones(4))
        assert frozen.misses == 1
