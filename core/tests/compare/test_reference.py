"""The reference that rows are compared with."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fairlead._compare._reference import State, read_case, with_dynamic, write_cases
from fairlead._models import Model
from fairlead.errors import ArgumentError


class Casting(torch.nn.Module):
    """Asks for float32 in the middle, as norms of real models do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x)
        return (y.to(torch.float32).pow(3).float() * torch.ones(8, dtype=torch.float32)).to(x.dtype)


class Noisy(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x)


class Demanding(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype is not torch.float32:
            raise TypeError("float32 only")
        return x.relu()


def model(module: torch.nn.Module, *args: torch.Tensor) -> Model:
    torch.manual_seed(0)
    return Model("m", module, args or (torch.randn(3, 8),), {})


def written(each: Model, folder: Path, **how: bool) -> tuple[str, ...]:
    state = State(folder)
    state.save(each)
    return write_cases(each, state, folder, training=how.get("training", False), dynamic=how.get("dynamic", False))


def test_float64_stays_float64_through_casts(tmp_path: Path) -> None:
    each = model(Casting())
    written(each, tmp_path)
    case = read_case(tmp_path, 0)
    weight, bias = (tensor.detach().double() for tensor in each.module.parameters())
    expected = torch.nn.functional.linear(each.args[0].double(), weight, bias).pow(3)
    assert case.exact is not None
    torch.testing.assert_close(case.exact["0"], expected, rtol=1e-14, atol=1e-14)
    assert case.eager["0"].dtype is torch.float32
    assert torch.get_default_dtype() is torch.float32


def test_a_model_that_refuses_float64_is_its_own_reference(tmp_path: Path) -> None:
    written(model(Demanding()), tmp_path)
    assert read_case(tmp_path, 0).exact is None


def test_a_model_that_draws_random_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="gives another result each time: 0 differs") as caught:
        written(model(Noisy()), tmp_path)
    assert str(caught.value).splitlines()[2] == "  next: turn dropout and other random numbers off in the factory"


def test_a_model_that_fails_in_eager_says_so(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="fails in plain PyTorch: RuntimeError") as caught:
        written(model(Casting(), torch.randn(3, 7)), tmp_path)
    assert "calling it with 0 [3, 7]" in str(caught.value)


def test_training_has_the_loss_gradients_and_buffers(tmp_path: Path) -> None:
    each = model(torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4)))
    each.module.train()
    written(each, tmp_path, training=True)
    found = read_case(tmp_path, 0).eager
    assert set(found) >= {"0", "gradient of 0.weight", "gradient of 1.bias", "buffer 1.running_mean"}
    assert each.module.get_buffer("1.num_batches_tracked").item() == 0, "the model is left as it was saved"


def test_dynamic_sizes_include_two_that_are_new(tmp_path: Path) -> None:
    each = with_dynamic(model(Casting()))
    assert written(each, tmp_path, dynamic=True) == ("batch 3", "batch 4", "batch 6")
    assert [read_case(tmp_path, i).eager["0"].shape[0] for i in range(3)] == [3, 4, 6]


def test_inputs_without_a_common_batch_have_to_declare_what_is_dynamic() -> None:
    with pytest.raises(ArgumentError, match="does not say which dimensions are dynamic"):
        with_dynamic(model(Casting(), torch.randn(3, 8), torch.randn(2)))


def test_another_process_adopts_the_same_weights_and_inputs(tmp_path: Path) -> None:
    first, second = model(Casting()), Model("m", Casting(), (torch.zeros(3, 8),), {})
    State(tmp_path).save(first)
    adopted = State(tmp_path).adopt(second)
    assert torch.equal(adopted.module(*adopted.args), first.module(*first.args))


def test_restoring_touches_only_what_changed(tmp_path: Path) -> None:
    each, state = model(Casting()), State(tmp_path)
    state.save(each)
    weight, bias = each.module.parameters()
    with torch.no_grad():
        bias.add_(1)
    versions = weight._version, bias._version
    state.restore(each)
    assert weight._version == versions[0]
    assert bias._version > versions[1]


def test_a_model_that_amplifies_rounding_has_that_on_record(tmp_path: Path) -> None:
    edge = torch.full((1, 64), 0.5).nextafter(torch.tensor(1.0))
    written(model(torch.nn.Hardshrink(0.5), edge), tmp_path)
    assert read_case(tmp_path, 0).shaken["0"] > 0.4
    written(model(torch.nn.Hardshrink(0.5), edge + 1), tmp_path)
    assert read_case(tmp_path, 0).shaken["0"] < 1e-6


def test_a_gradient_that_jumps_where_a_rounding_decides_has_that_on_record(tmp_path: Path) -> None:
    """One of 40 numbers before a ReLU is zero but for rounding: few of the runs put it on the other side."""
    weight = torch.ones(40, 3)
    weight[0] = torch.tensor([1.0, 1.0, -2.0])
    module = torch.nn.Sequential(torch.nn.Linear(3, 40, bias=False), torch.nn.ReLU(), torch.nn.Linear(40, 1))
    with torch.no_grad():
        module[0].weight.copy_(weight)  # type: ignore[arg-type]
    x = torch.tensor([[0.1, 0.2, 0.15 + 1e-8]])
    written(model(module, x), tmp_path, training=True)
    case = read_case(tmp_path, 0)
    gradient = case.eager["gradient of 0.weight"]
    assert case.shaken["gradient of 0.weight"] > 1e-3 * gradient.abs().max()
