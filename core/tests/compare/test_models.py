"""MODEL arguments: what each form gives, and what is said of one that leads nowhere."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from fairlead import ir
from fairlead._models import CATALOG, check_spec, next_sizes, tensors_of, with_tensors
from fairlead._models import _catalog as catalog
from fairlead._models._load import load
from fairlead.errors import ArgumentError, ExtraMissingError, FairleadError, ModelNotFoundError

FACTORIES = """
import torch

class Exemplary(torch.nn.Linear):
    example_inputs = (torch.ones(2, 3),)

def keywords():
    return torch.nn.Linear(3, 4), {"input": torch.ones(2, 3)}

def positional():
    return torch.nn.Linear(3, 4), [torch.ones(2, 3)], {"0": {0: "batch"}}

def one():
    return torch.nn.Linear(3, 4), torch.ones(2, 3)

def attribute():
    return Exemplary(3, 4)

def no_module():
    return torch.relu, torch.ones(2, 3)

def nothing():
    return None

def bad_dynamic():
    return torch.nn.Linear(3, 4), torch.ones(2, 3), {"x": {0: "batch"}}

def raising():
    raise ValueError("no weights here")

number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "factories_of_this_test.py"
    path.write_text(FACTORIES)
    return str(path)


def three_lines(error: FairleadError) -> list[str]:
    lines = str(error).splitlines()
    assert [line[:8] for line in lines[1:]] == ["  from: ", "  next: "]
    return lines


@pytest.mark.parametrize("factory", ["keywords", "positional", "one", "attribute"])
def test_each_form_of_a_factory_gives_a_model_that_can_be_called(file: str, factory: str) -> None:
    model = load(f"{file}:{factory}")
    assert model.module(*model.args, **model.kwargs).shape == (2, 4)
    assert not model.module.training


def test_a_factory_draws_the_same_weights_each_time(file: str) -> None:
    first, second = (load(f"{file}:one").module.state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_declared_dimensions_can_be_resized(file: str) -> None:
    model = load(f"{file}:positional")
    assert model.sizes() == {"batch": 2}
    assert model.resized({"batch": 5})["0"].shape == (5, 3)


@pytest.mark.parametrize(
    ("factory", "what"),
    [
        ("no_module", "the module is a builtin_function_or_method, not a torch.nn.Module"),
        ("nothing", "it returned a NoneType"),
        ("number", "'number' is a int, not a function"),
        ("raising", "raised ValueError: no weights here"),
        ("bad_dynamic", "declares dynamic dimensions [0] of 'x', which has none of them"),
    ],
)
def test_a_factory_that_gives_no_model_is_an_argument_error(file: str, factory: str, what: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        load(f"{file}:{factory}")
    assert what in three_lines(caught.value)[0]


@pytest.mark.parametrize(
    ("spec", "what", "next_"),
    [
        ("resnet5", "no model is called 'resnet5'", "did you mean 'resnet50'?"),
        ("zzz", "no model is called 'zzz'", "'fairlead compare --list' lists them"),
        ("gone.fir", "there is no file 'gone.fir'", "check the path"),
        ("no_such_module:f", "does not import: ModuleNotFoundError", "give package.module:factory"),
        ("fairlead:no_such", "'fairlead' has no 'no_such'", "name a function of that module"),
    ],
)
def test_a_name_that_leads_nowhere_says_what_to_do(spec: str, what: str, next_: str) -> None:
    with pytest.raises(ModelNotFoundError) as caught:
        load(spec)
    first, _, last = three_lines(caught.value)
    assert what in first
    assert next_ in last


def test_a_bundled_model_without_transformers_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> object:
        return None if name == "transformers" else importlib.util.find_spec(name)

    monkeypatch.setattr(catalog, "find_spec", without)
    check_spec("mlp")
    with pytest.raises(ExtraMissingError) as caught:
        check_spec("bert")
    assert three_lines(caught.value) == [
        "FL702: the bundled model 'bert' needs transformers, which is not installed",
        "  from: fairlead's extra 'models'",
        "  next: pip install 'fairlead[models]'; or 'mlp', which needs nothing more",
    ]


def test_a_fir_file_gives_its_graph_with_its_constants(tmp_path: Path) -> None:
    x = ir.Value(0, ir.TensorType(ir.DType.f32, ("b", 3)))
    weight = ir.Value(1, ir.TensorType(ir.DType.f32, (4, 3)))
    y = ir.Value(2, ir.TensorType(ir.DType.f32, ("b", 4)))
    node = ir.Node("aten.linear.default", (x, weight, None), (y,))
    inputs = (ir.Input(x), ir.Input(weight, ir.Role.parameter, "w"))
    graph = ir.Graph("g", ir.Kind.inference, inputs, (node,), (ir.Output(y),), (ir.Symbol("b", 2, None, (0, 0)),))
    held = torch.arange(12.0).reshape(4, 3)
    ir.write(tmp_path / "g.fir", graph, {1: held})

    model = load(str(tmp_path / "g.fir"))
    (given,) = model.args
    assert torch.equal(model.module(given)[0], given @ held.T)
    assert model.dynamic == {"0": {0: "b"}}


def test_every_bundled_name_has_one_line() -> None:
    assert all(line and "\n" not in line for line in CATALOG.values())


def test_tensors_are_found_in_objects_and_put_back_in_containers() -> None:
    class Cache:
        def __init__(self) -> None:
            self.keys = [torch.zeros(1)]
            self.itself = self

    assert list(tensors_of({"cache": Cache(), "n": 3})) == ["cache.keys.0"]
    assert list(tensors_of(torch.zeros(1))) == ["0"]
    replaced = with_tensors({"a": (torch.zeros(1), 2)}, {"a.0": torch.ones(1)})
    assert replaced == {"a": (torch.ones(1), 2)}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 48])
def test_sizes_to_try_are_three_and_none_is_special_to_torch(size: int) -> None:
    assert len(set(next_sizes(size))) == 3
    assert min(next_sizes(size)) >= 2
