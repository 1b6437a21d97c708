"""Real programs, not only tensors in and out."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable
from typing import Literal

import pytest
import torch
import transformers
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

import fairlead
from fairlead._pieces import recording
from fairlead._program import Program
from fairlead.errors import FallbackBudgetError

from .nets import Attention, Mlp


def _gpt2() -> torch.nn.Module:
    config = transformers.GPT2Config(
        vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=64, bos_token_id=1, eos_token_id=2
    )
    return transformers.GPT2LMHeadModel(config).eval()


def test_a_call_without_gradients_passes_autograds_wrapper_by(monkeypatch: pytest.MonkeyPatch) -> None:
    called, between = Program.__call__, []

    def noting(self: Program, args: list[torch.Tensor]) -> list[torch.Tensor]:
        between.append(any("_aot_autograd" in frame.filename for frame in inspect.stack(0)))
        return called(self, args)

    monkeypatch.setattr(Program, "__call__", noting)
    x = torch.randn(3, 3)
    f = fairlead.compile(lambda x: (x @ x).sin(), backend="eager")
    g = fairlead.compile(lambda x: (x @ x, x.sin_().view(9)), backend="eager")
    with torch.no_grad():
        torch.testing.assert_close(f(x), (x @ x).sin())
        with torch.autocast("cpu", torch.bfloat16):
            assert f(x).dtype == torch.bfloat16
        g(x.clone())
    f(x)
    assert between == [False, True, True, True]


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_program_that_turns_gradients_on_or_off_leaves_them_so(before: bool, after: bool) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        torch.set_grad_enabled(after)
        return y

    compiled = fairlead.compile(program, backend="eager")

    def left() -> bool:
        with torch.set_grad_enabled(before):
            compiled(torch.ones(3))
            return torch.is_grad_enabled()

    assert [left(), left()] == [after, after]
    with fairlead.freeze(compiled):
        assert left() == after


def test_a_size_that_varies_does_so_behind_a_break() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    compiled = fairlead.compile(program, backend="eager")
    with torch.no_grad():
        for size in (4, 5, 7):
            x = torch.randn(size, 3)
            torch._dynamo.mark_dynamic(x, 0)
            torch.testing.assert_close(compiled(x), program(x))
    assert len(compiled.fairlead.placement.graphs) == 2


def test_a_transformers_model_returns_its_output_object(backend: str) -> None:
    model = _gpt2()
    ids = torch.randint(3, 60, (2, 9))
    with torch.no_grad():
        expected, got = model(ids, use_cache=False), fairlead.compile(model, backend=backend)(ids, use_cache=False)
    assert type(got) is type(expected)
    torch.testing.assert_close(got.logits, expected.logits, rtol=1e-4, atol=1e-4)


def _greedy(step: torch.nn.Module, ids: torch.Tensor, count: int) -> list[int]:
    """Greedy decoding with a cache that grows at every step."""
    cache, tokens, current = transformers.DynamicCache(), [], ids
    for _ in range(count):
        out = step(current, past_key_values=cache, use_cache=True)
        cache, current = out.past_key_values, out.logits[:, -1:].argmax(-1)
        tokens.append(current.item())
    return tokens


@pytest.mark.parametrize("name", ["eager", "onnxrt", "openvino"])
def test_decoding_with_a_growing_cache_does_not_compile_for_each_token(name: str) -> None:
    model = _gpt2()
    ids = torch.randint(3, 60, (1, 5))
    compiled = fairlead.compile(model, backend=name, dynamic=True)
    with torch.no_grad():
        expected = _greedy(model, ids, 12)
        assert _greedy(compiled, ids, 6) == expected[:6]
        known = len(compiled.fairlead.placement.graphs)
        assert _greedy(compiled, ids, 12) == expected
    assert len(compiled.fairlead.placement.graphs) == known


def test_a_module_with_graph_breaks_runs_in_pieces(backend: str) -> None:
    class Broken(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Mlp(), Mlp()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            torch._dynamo.graph_break()
            return self.second(y) if y.sum().item() > 0 else self.second(-y)

    model = Broken().eval()
    compiled = fairlead.compile(model, backend=backend)
    with torch.no_grad():
        for x in (torch.randn(2, 8), -torch.ones(2, 8)):
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
    assert len(compiled.fairlead.placement.graphs) >= 2


@pytest.mark.skipif(
    "isolate_recompiles" not in inspect.signature(torch.compile).parameters, reason="torch counts them together"
)
def test_a_program_is_not_told_that_it_is_exported() -> None:
    def asking(x: torch.Tensor) -> torch.Tensor:
        return x * 5 if torch.compiler.is_exporting() else x + 1

    x = torch.zeros(3)
    assert torch.equal(fairlead.compile(asking, backend="eager")(x), x + 1)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(asking, backend="fairlead-eager")(x), x + 1)


def test_many_modules_of_one_class_are_compiled_each() -> None:
    x = torch.randn(2, 8)
    programs = [fairlead.compile(Mlp(), backend="eager") for _ in range(torch._dynamo.config.recompile_limit + 2)]
    for program in programs:
        program(x)
    assert [len(p.fairlead.placement.graphs) for p in programs] == [1] * len(programs)
    assert [p.fairlead.recompilations for p in programs] == [()] * len(programs)


def test_fullgraph_refuses_a_graph_break() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        fairlead.compile(broken, backend="eager", fullgraph=True)(torch.ones(2))


def test_a_plain_function_takes_nested_arguments(backend: str) -> None:
    @fairlead.compile(backend=backend)
    def program(items: dict[str, list[torch.Tensor]], *, scale: float = 2.0) -> dict[str, torch.Tensor]:
        return {name: sum(parts) * scale for name, parts in items.items()}

    got = program({"a": [torch.ones(2), torch.ones(2)], "b": [torch.zeros(3)]}, scale=3.0)
    assert got["a"].tolist() == [6.0, 6.0]
    assert got["b"].tolist() == [0.0, 0.0, 0.0]


def test_two_models_in_two_threads(backend: str) -> None:
    models = [Mlp().eval(), Attention().eval()]
    inputs = [torch.randn(3, 8), torch.randint(0, 16, (2, 5))]
    programs = [fairlead.compile(m, backend=backend) for m in models]
    with torch.no_grad():
        expected = [m(x) for m, x in zip(models, inputs, strict=True)]
        for program, x in zip(programs, inputs, strict=True):
            program(x)
    failures: list[str] = []

    def work(program: torch.nn.Module, x: torch.Tensor, wanted: torch.Tensor) -> None:
        with torch.no_grad():
            for _ in range(50):
                if not torch.allclose(program(x), wanted, rtol=1e-4, atol=1e-4):
                    failures.append(str(program))

    threads = [
        threading.Thread(target=work, args=args) for args in zip(programs * 2, inputs * 2, expected * 2, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_torch_func_works_inside_a_program(backend: str) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gradient = torch.func.grad(lambda v: (v**3).sum())(x)
        return gradient, torch.func.vmap(lambda row: row * row.sum())(x)

    x = torch.randn(3, 4)
    for mine, theirs in zip(fairlead.compile(program, backend=backend)(x), program(x), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("module", [False, True])
def test_a_transform_of_a_program_runs_in_eager_mode_and_says_so(
    module: bool, caplog: pytest.LogCaptureFixture
) -> None:
    program = Mlp().eval() if module else torch.tanh
    compiled = fairlead.compile(program, backend="onnxrt")
    x = torch.randn(3, 8)
    with caplog.at_level(logging.WARNING, "fairlead"):
        for _ in range(2):
            found, expected = (torch.func.grad(lambda v, f=f: f(v).sum())(x) for f in (compiled, program))
            torch.testing.assert_close(found, expected)
    assert caplog.text.count("runs in eager mode within torch.func.grad: torch compiles nothing within") == 1
    (decline,) = compiled.fairlead.placement.declines
    assert (decline.op, decline.backend) == ("torch.func.grad", "eager")
    with torch.no_grad():  # torch by itself would never compile it again
        torch.testing.assert_close(compiled(x), program(x))
    assert compiled.fairlead.placement.graphs[-1].native > 0


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # of torch's own, in make_dual
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("fullgraph", [False, True])
def test_forward_mode_through_a_program_runs_in_eager_mode_and_says_so(
    fullgraph: bool, grad: bool, caplog: pytest.LogCaptureFixture
) -> None:
    program = Mlp().eval()
    compiled = fairlead.compile(program, backend="onnxrt", fullgraph=fullgraph)
    x, direction = torch.randn(3, 8), torch.randn(3, 8)
    with caplog.at_level(logging.WARNING, "fairlead"), torch.set_grad_enabled(grad), forward_ad.dual_level():
        found, expected = (forward_ad.unpack_dual(f(forward_ad.make_dual(x, direction))) for f in (compiled, program))
    torch.testing.assert_close(found.primal, expected.primal)
    torch.testing.assert_close(found.tangent, expected.tangent)
    assert caplog.text.count("runs in eager mode within torch.autograd.forward_ad") == 1
    assert "calls torch.func.jvp instead" in caplog.text
    with torch.no_grad(), recording() as runs:
        torch.testing.assert_close(compiled(x), program(x))
    assert runs  # as compiled, and not as captured
    assert max(graph.native for graph in compiled.fairlead.placement.graphs) > 0


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("rng", [None, "eager"])
def test_forward_mode_goes_through_what_draws_and_is_recomputed(rng: Literal["eager"] | None) -> None:
    linear = torch.nn.Linear(8, 8)

    def program(x: torch.Tensor) -> torch.Tensor:
        torch.rand(3)  # which eager draws and nothing uses
        hidden = checkpoint(lambda v: torch.sin(linear(v)), x, use_reentrant=False)
        return torch.nn.functional.dropout(hidden)

    def derived(f: Callable[[torch.Tensor], torch.Tensor]) -> forward_ad.UnpackedDualTensor:
        torch.manual_seed(0)
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(x, direction)))

    x, direction = torch.randn(3, 8), torch.randn(3, 8)
    try:
        expected = derived(program)
    except NotImplementedError:
        pytest.skip("eager mode has no forward mode through checkpoints in this release")
    found = derived(fairlead.compile(program, backend="onnxrt", fullgraph=True, rng=rng))
    torch.testing.assert_close(found.primal, expected.primal)
    torch.testing.assert_close(found.tangent, expected.tangent)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("compiled_before", [False, True])
def test_forward_mode_through_torch_s_own_compile_is_eager_mode_s(grad: bool, compiled_before: bool) -> None:
    program = Mlp().eval()
    compiled = torch.compile(program, backend="fairlead-onnxrt")
    x, direction = torch.randn(3, 8), torch.randn(3, 8)
    with torch.set_grad_enabled(grad):
        if compiled_before:
            compiled(x)
        with forward_ad.dual_level():
            found, expected = (
                forward_ad.unpack_dual(f(forward_ad.make_dual(x, direction))) for f in (compiled, program)
            )
    torch.testing.assert_close(found.primal, expected.primal)
    torch.testing.assert_close(found.tangent, expected.tangent)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_forward_mode_is_an_error_where_nothing_may_be_left_to_others() -> None:
    strict = fairlead.compile(torch.tanh, backend="onnxrt", fullgraph=True, max_fallback=0)
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.randn(3), torch.randn(3))
        for _ in range(2):
            with pytest.raises(FallbackBudgetError, match=r"torch\.autograd\.forward_ad x1"):
                strict(dual)


def test_a_transform_of_a_program_is_an_error_where_nothing_may_be_left_to_others() -> None:
    x = torch.randn(3)
    for demand in ({"max_fallback": 0}, {"fallback": ()}):
        strict = fairlead.compile(torch.tanh, backend="onnxrt", **demand)
        for _ in range(2):
            with pytest.raises(FallbackBudgetError, match=r"torch\.func\.vmap x1.*compile the transform instead"):
                torch.func.vmap(strict)(x)
    whole = fairlead.compile(torch.tanh, backend="onnxrt", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.func.vmap(whole)(x)


def test_numpy_code_is_compiled(backend: str) -> None:
    import numpy as np

    def program(x: np.ndarray) -> np.ndarray:
        return np.tanh(x) * 2 + x.sum(axis=0)

    x = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(fairlead.compile(program, backend=backend)(x), program(x), rtol=1e-5)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_torchs_own_encoder_layer_is_no_opaque_op(padded: bool, norm_first: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=norm_first).eval()
    x = torch.randn(2, 5, 16)
    mask = torch.tensor([[False] * 4 + [True], [False] * 3 + [True] * 2]) if padded else None
    compiled = fairlead.compile(layer, backend="onnxrt", max_fallback=0)
    with torch.no_grad():
        expected, got = layer(x, src_key_padding_mask=mask), compiled(x, src_key_padding_mask=mask)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    (graph,) = compiled.fairlead.placement.graphs
    assert graph.native == graph.total > 10
