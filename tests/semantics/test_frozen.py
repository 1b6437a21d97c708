"""Frozen programs: only what is compiled runs, with the same results, and what it is not compiled for is a miss."""

from __future__ import annotations

import copy
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
from torch.autograd import forward_ad

import fairlead
from fairlead.errors import ArgumentError, NotCompiledError

from .nets import Counting, Mlp

FAST = ("eager", "onnxrt", "openvino")
"""Backends that compile within a moment."""

some = pytest.mark.parametrize("backend", FAST)
WEIGHTS: tuple[Literal["watched", "constant"], ...] = ("watched", "constant")
held = pytest.mark.parametrize("weights", WEIGHTS)


def warm(module: torch.nn.Module, backend: str, *sizes: int) -> Any:
    compiled = fairlead.compile(module, backend=backend, dynamic=False)
    with torch.no_grad():
        for size in sizes:
            compiled(torch.randn(size, 8))
    return compiled


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("something was compiled")

    monkeypatch.setattr("fairlead.torch.capture", compiled)
    monkeypatch.setattr("fairlead._compile._hook_calls.compile_job", compiled)


def test_mixed_sizes_run_and_nothing_is_compiled(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Mlp().eval()
    compiled = warm(model, backend, 1, 4)
    no_compiler(monkeypatch)
    for weights in WEIGHTS:
        with torch.no_grad(), fairlead.freeze(compiled, weights=weights) as frozen:
            for size in (1, 4, 4, 1, 1, 4, 4, 1):
                x = torch.randn(size, 8)
                torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        assert frozen.misses == 0


@some
@held
@pytest.mark.parametrize(
    "x",
    [torch.randn(3, 8), torch.randn(1, 8, dtype=torch.float64), torch.randn(8, 1).t().expand(1, 8).double()],
    ids=["shape", "dtype", "strides"],
)
def test_what_was_never_called_is_an_error_before_anything_runs(backend: str, weights: Any, x: torch.Tensor) -> None:
    compiled = warm(Mlp().eval(), backend, 1)
    with torch.no_grad(), fairlead.freeze(compiled, weights=weights) as frozen:
        for _ in range(3):
            compiled(torch.randn(1, 8))
        with pytest.raises(NotCompiledError) as caught:
            compiled(x)
        assert frozen.misses == 1
    assert str(caught.value).splitlines() == [
        f"FL506: a frozen program has nothing compiled for Mlp({str(x.dtype)[6:]}{list(x.shape)})",
        f"  from: frozen on {backend!r}, 1 signatures in use",
        '  next: call it so before freezing, or freeze with miss="eager"',
    ]


@some
def test_a_miss_runs_in_eager_mode_where_that_is_chosen(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    model = Mlp().eval()
    compiled = warm(model, backend, 1)
    with torch.no_grad(), fairlead.freeze(compiled, miss="eager") as frozen, caplog.at_level(logging.WARNING):
        for size in (3, 1, 3):
            x = torch.randn(size, 8)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    assert frozen.misses == 2
    warned = [r for r in caplog.records if r.name == "fairlead.freeze"]
    assert [r.getMessage().splitlines()[-1] for r in warned] == ["running it in eager mode"]


def in_place(model: Mlp) -> None:
    model.up.weight.mul_(1.5)


def loaded(model: Mlp) -> None:
    model.load_state_dict({n: t + 0.25 for n, t in model.state_dict().items()})


def replaced(model: Mlp) -> None:
    model.up.weight = torch.nn.Parameter(torch.ones_like(model.up.weight))


def behind_the_back(model: Mlp) -> None:
    model.up.weight.data = torch.ones_like(model.up.weight)


@some
@pytest.mark.parametrize("change", [in_place, loaded, replaced, behind_the_back])
def test_watched_weights_are_never_stale(backend: str, change: Callable[[Mlp], None]) -> None:
    model = Mlp().eval()
    compiled = warm(model, backend, 2)
    x = torch.randn(2, 8)
    with torch.no_grad(), fairlead.freeze(compiled) as frozen:
        for _ in range(3):
            compiled(x)
        change(model)
        if backend != "eager":  # which reads them where they are
            with pytest.raises(NotCompiledError, match="weights as they are now"):
                compiled(x)
            frozen.refresh()
        for _ in range(3):
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


@some
def test_constant_weights_stay_until_they_are_refreshed(backend: str) -> None:
    model = Mlp().eval()
    compiled = warm(model, backend, 2)
    x = torch.randn(2, 8)
    with torch.no_grad(), fairlead.freeze(compiled, weights="constant") as frozen:
        for _ in range(3):
            before = compiled(x)
        model.up.weight = torch.nn.Parameter(torch.ones_like(model.up.weight))
        assert torch.equal(compiled(x), before)
        frozen.refresh()
        for _ in range(3):
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


@some
def test_thawed_programs_compile_again(backend: str) -> None:
    model = Mlp().eval()
    compiled = warm(model, backend, 1)
    x = torch.randn(5, 8)
    with torch.no_grad():
        frozen = fairlead.freeze(compiled)
        with pytest.raises(NotCompiledError):
            compiled(x)
        frozen.thaw()
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


@some
def test_training_steps_and_modes_keep_their_guards(backend: str) -> None:
    model = Mlp()
    reference = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend=backend, dynamic=False)
    x = torch.randn(2, 8)
    compiled(x).sum().backward()
    model.zero_grad()
    with fairlead.freeze(compiled):
        for _ in range(3):
            compiled(x).sum().backward()
            reference(x).sum().backward()
        with torch.no_grad(), pytest.raises(NotCompiledError):
            compiled(x)
        with pytest.raises(NotCompiledError):
            compiled(x.clone().requires_grad_())
    assert model.up.weight.grad is not None
    torch.testing.assert_close(model.up.weight.grad, reference.up.weight.grad, rtol=1e-4, atol=1e-5)


def test_a_backward_that_was_never_run_is_a_miss() -> None:
    compiled = fairlead.compile(Mlp(), backend="eager")
    x = torch.randn(2, 8)
    compiled(x)
    with fairlead.freeze(compiled), pytest.raises(NotCompiledError):
        compiled(x).sum().backward()


@some
@held
def test_buffers_are_written_as_in_eager(backend: str, weights: Any) -> None:
    model = Counting()
    reference = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend=backend, dynamic=False)
    with torch.no_grad():
        for call in range(4):
            x = torch.randn(5, 8)
            torch.testing.assert_close(compiled(x), reference(x), rtol=1e-4, atol=1e-5)
            if call == 0:
                fairlead.freeze(compiled, weights=weights)
    assert model.calls == 4
    torch.testing.assert_close(model.norm.running_mean, reference.norm.running_mean, rtol=1e-4, atol=1e-5)


def test_a_program_with_breaks_of_the_graph_is_held_to_all_its_graphs() -> None:
    lines: list[int] = []

    @torch.compiler.disable
    def note(x: torch.Tensor) -> None:
        lines.append(x.shape[0])

    def program(x: torch.Tensor, *, late: bool = False) -> torch.Tensor:
        y = x.sin()
        note(x)
        if late:
            torch._dynamo.graph_break()
        return y.cos()

    compiled = fairlead.compile(program, backend="eager", dynamic=False)
    x = torch.ones(3)
    compiled(x)
    with fairlead.freeze(compiled) as frozen:
        for _ in range(3):
            assert torch.equal(compiled(x), x.sin().cos())
        with pytest.raises(NotCompiledError):
            compiled(torch.ones(4))
    assert lines == [3] * 4
    with fairlead.freeze(compiled, miss="eager") as frozen:
        assert torch.equal(compiled(torch.ones(4)), torch.ones(4).sin().cos())
        assert torch.equal(compiled(x, late=True), x.sin().cos())
    assert frozen.misses == 2


def test_a_call_that_changes_what_guards_look_at_keeps_them() -> None:
    seen: list[torch.Tensor] = []

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        seen.append(y)
        return y

    compiled = fairlead.compile(program, backend="eager")
    x = torch.ones(3)
    with torch.no_grad(), fairlead.freeze(compiled, miss="eager") as frozen:
        for _ in range(3):
            compiled(x)
    assert len(seen) == 3
    assert frozen.misses == 3


@some
@held
def test_structure_values_and_what_is_returned_are_the_programs(backend: str, weights: Any) -> None:
    scale = torch.nn.Parameter(torch.randn(4), requires_grad=False)

    def program(x: torch.Tensor, given: dict[str, Any], *, double: bool = False) -> dict[str, Any]:
        y = (x * given["a"] + given["b"][0].sum()) * (2 * scale if double else scale)
        return {"y": y, "n": x.shape[0], "o": (y, x)}

    compiled = fairlead.compile(program, backend=backend, dynamic=True)
    given = {"a": torch.randn(4), "b": [torch.randn(7)]}
    with torch.no_grad():
        compiled(torch.randn(3, 4), given)
        with fairlead.freeze(compiled, weights=weights):
            for size in (3, 5, 3, 5, 3, 5, 5):
                x = torch.randn(size, 4)
                result = compiled(x, given)
                torch.testing.assert_close(result["y"], program(x, given)["y"], rtol=1e-4, atol=1e-5)
                assert (result["n"], result["o"][1] is x, result["o"][0] is result["y"]) == (size, True, True)
            with pytest.raises(NotCompiledError, match="double=True"):
                compiled(x, given, double=True)
            with pytest.raises(NotCompiledError):
                compiled(x, {**given, "c": 1, "b": given["b"] * 2, "a": x[0].double()})


@some
def test_threads_share_a_frozen_program(backend: str) -> None:
    model = Mlp().eval()
    compiled = warm(model, backend, 1, 4)
    failures: list[BaseException] = []

    def call(size: int) -> None:
        try:
            with torch.no_grad():
                for _ in range(30):
                    x = torch.randn(size, 8)
                    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        except BaseException as error:
            failures.append(error)

    with fairlead.freeze(compiled, weights="constant"):
        threads = [threading.Thread(target=call, args=(size,)) for size in (1, 4, 1, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


@pytest.mark.skipif(not hasattr(torch._C._dynamo.eval_frame, "_set_lru_cache"), reason="torch 2.8 moves its entries")
def test_threads_that_go_through_guards_do_not_miss_what_another_moves() -> None:
    compiled = warm(Mlp().eval(), "eager", 1, 2, 3, 4)
    failures: list[NotCompiledError] = []
    together = threading.Barrier(8)

    def call(size: int) -> None:
        together.wait()
        try:
            with torch.no_grad():
                for _ in range(3):
                    compiled(torch.randn(size, 8))
        except NotCompiledError as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            with fairlead.freeze(compiled):
                threads = [threading.Thread(target=call, args=(size,)) for size in (1, 2, 3, 4) * 2]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


@pytest.mark.parametrize("miss", ["error", "eager"])
def test_what_torch_has_given_up_to_compile_is_a_miss(miss: Any) -> None:
    with torch._dynamo.config.patch(recompile_limit=2), torch.no_grad():
        compiled = warm(Mlp().eval(), "eager", 1, 2, 3)
        with fairlead.freeze(compiled, miss=miss) as frozen:
            compiled(torch.randn(2, 8))
            if miss == "error":
                with pytest.raises(NotCompiledError):
                    compiled(torch.randn(3, 8))
            else:
                assert compiled(torch.randn(3, 8)).shape == (3, 8)
            assert frozen.misses == 1


@held
def test_hooks_run(weights: Any) -> None:
    model = Mlp().eval()
    calls: list[int] = []
    model.register_forward_pre_hook(lambda module, args: calls.append(len(args)))
    compiled = warm(model, "eager", 2)
    with torch.no_grad(), fairlead.freeze(compiled, weights=weights):
        for _ in range(3):
            compiled(torch.randn(2, 8))
        assert calls == [1] * 4
        model.register_forward_hook(lambda module, args, result: result + 1)
        with pytest.raises(NotCompiledError):
            compiled(torch.randn(2, 8))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # of torch's own, in make_dual
@pytest.mark.parametrize("miss", ["error", "eager"])
def test_no_tangent_of_forward_mode_is_lost(miss: Any) -> None:
    model = Mlp().eval()
    compiled = warm(model, "onnxrt", 2)
    with torch.no_grad(), forward_ad.dual_level(), fairlead.freeze(compiled, miss=miss) as frozen:
        dual = forward_ad.make_dual(torch.randn(2, 8), torch.randn(2, 8))
        if miss == "error":
            with pytest.raises(NotCompiledError, match="has no derivatives of forward mode"):
                compiled(dual)
        else:
            torch.testing.assert_close(*(forward_ad.unpack_dual(f(dual)).tangent for f in (compiled, model)))
    assert frozen.misses == 1


@some
@held
def test_results_are_the_callers_own(backend: str, weights: Any) -> None:
    compiled = warm(Mlp().eval(), backend, 2)
    with torch.no_grad(), fairlead.freeze(compiled, weights=weights):
        results = [compiled(torch.randn(2, 8)) for _ in range(6)]
    assert len({t.data_ptr() for t in results}) == 6


def test_freeze_without_a_program_holds_all_of_them() -> None:
    first, second = warm(Mlp().eval(), "eager", 1), warm(Mlp().eval(), "eager", 2)
    with torch.no_grad(), fairlead.freeze():
        first(torch.randn(1, 8))
        second(torch.randn(2, 8))
        with pytest.raises(NotCompiledError):
            first(torch.randn(2, 8))
        with pytest.raises(NotCompiledError):
            second(torch.randn(1, 8))


@pytest.mark.parametrize(
    ("arguments", "options", "lines"),
    [
        ((torch.nn.ReLU(),), {}, ["FL203: a ReLU cannot be frozen", "pass what fairlead.compile returned"]),
        ((), {"miss": "no"}, ["FL203: miss is 'no'", 'pass miss="error" or miss="eager"']),
        ((), {"weights": 1}, ["FL203: weights is 1", 'pass weights="watched" or weights="constant"']),
    ],
)
def test_wrong_arguments_are_errors(arguments: tuple[Any, ...], options: dict[str, Any], lines: list[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        fairlead.freeze(*arguments, **options)
    assert str(caught.value).splitlines() == [lines[0], "  from: fairlead.freeze", f"  next: {lines[1]}"]
