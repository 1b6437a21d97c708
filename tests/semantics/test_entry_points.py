"""The ways in: fairlead.compile, torch.compile by name, the environment."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest
import torch

import fairlead
from fairlead.errors import ArgumentError, BackendNotFoundError, UnknownOptionError

from .nets import Mlp


@pytest.mark.parametrize(
    "how", [{"backend": "fairlead-eager"}, {"backend": "fairlead", "options": {"backend": "eager"}}]
)
def test_torch_compile_finds_the_backend_without_importing_fairlead(how: dict[str, object]) -> None:
    code = (
        "import torch, sys\n"
        f"f = torch.compile(lambda x: x * 2 + 1, **{how!r})\n"
        "print(f(torch.ones(2)).tolist(), 'fairlead._program' in sys.modules)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split("\n")[0] == "[3.0, 3.0] True"


@pytest.mark.parametrize("name", ["onnxrt", "openvino", "openxla", "ipex", "tvm", "inductor"])
def test_torch_compile_knows_every_wheel_by_name(name: str) -> None:
    assert f"fairlead-{name}" in torch._dynamo.list_backends()


def test_a_decorator_with_and_without_arguments() -> None:
    @fairlead.compile(backend="eager")
    def with_arguments(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def plain(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    assert with_arguments(torch.zeros(1)).item() == 1
    assert with_arguments.__name__ == "with_arguments"
    assert fairlead.compile(plain, backend="eager")(torch.zeros(1)).item() == 1


def test_disable_and_the_environment_give_the_program_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Mlp()
    assert fairlead.compile(model, backend="eager", disable=True) is model
    monkeypatch.setenv("FAIRLEAD_DISABLE", "1")
    assert fairlead.compile(model, backend="eager") is model


def test_the_environment_names_the_backend_where_the_call_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_BACKEND", "onnxrt")
    assert fairlead.compile(Mlp()).fairlead.backend == "onnxrt"
    assert fairlead.compile(Mlp(), backend="eager").fairlead.backend == "eager"
    monkeypatch.delenv("FAIRLEAD_BACKEND")
    assert fairlead.compile(Mlp()).fairlead.backend == "inductor"


def test_a_wrong_argument_is_an_error_at_once() -> None:
    with pytest.raises(BackendNotFoundError, match="did you mean 'openvino'"):
        fairlead.compile(Mlp(), backend="openvin")
    with pytest.raises(UnknownOptionError, match="has no option 'threads'"):
        fairlead.compile(Mlp(), backend="onnxrt", options={"threads": 2})
    with pytest.raises(ArgumentError, match="has no modes"):
        fairlead.compile(Mlp(), backend="eager", mode="max-autotune")
    with pytest.raises(ArgumentError, match="max_fallback is -1"):
        fairlead.compile(Mlp(), backend="eager", max_fallback=-1)
    with pytest.raises(BackendNotFoundError, match="'nope'"):
        fairlead.compile(Mlp(), backend="eager", fallback=("nope",))


def test_a_compiled_module_can_be_copied_and_pickled() -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend="eager")
    x = torch.randn(2, 8)
    with torch.no_grad():
        expected = compiled(x)
        for twin in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
            torch.testing.assert_close(twin(x), expected)
            assert twin.fairlead.backend == "eager"
            assert len(twin.fairlead.placement.graphs) == 1
    assert len(compiled.fairlead.placement.graphs) == 1
    assert set(compiled.state_dict()) == {f"_orig_mod.{name}" for name in model.state_dict()}
    assert not hasattr(model, "fairlead")


def test_the_copy_of_a_model_around_a_compiled_module_has_an_account_of_its_own() -> None:
    model = torch.nn.Sequential(fairlead.compile(Mlp().eval(), backend="eager"))
    twin = copy.deepcopy(model)
    with torch.no_grad():
        torch.testing.assert_close(twin(torch.ones(2, 8)), model(torch.ones(2, 8)))
    twin[0].fairlead.refresh()
    assert twin[0].fairlead.placement is not model[0].fairlead.placement
    assert [len(m[0].fairlead.placement.graphs) for m in (model, twin)] == [1, 1]
