"""What counts as right, tensor by tensor."""

from __future__ import annotations

import pytest
import torch

from fairlead._accuracy import Case, Findings


def case(**tensors: torch.Tensor) -> Case:
    """A case whose eager results are float32 roundings of exact ones."""
    eager = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    return Case({}, eager, tensors)


def problems(reference: Case, got: dict[str, torch.Tensor]) -> list[str]:
    findings = Findings()
    findings.add("example", reference, got)
    return findings.problems


@pytest.fixture
def exact() -> torch.Tensor:
    return torch.linspace(-3.0, 5.0, 1000, dtype=torch.float64) / 3


def test_eagers_own_rounding_is_right(exact: torch.Tensor) -> None:
    findings = Findings()
    findings.add("example", case(y=exact), {"y": exact.float()})
    assert findings.problems == []
    assert findings.error == findings.eager > 0


def test_bfloat16_inside_of_float32_is_wrong(exact: torch.Tensor) -> None:
    (problem,) = problems(case(y=exact), {"y": exact.bfloat16().float()})
    assert problem.startswith("example: y is off by ")
    assert "eager by" in problem


def test_the_error_is_relative_to_the_largest_value(exact: torch.Tensor) -> None:
    findings = Findings()
    findings.add("example", case(y=exact), {"y": exact.float() + float(exact.abs().max()) / 4})
    assert findings.error == pytest.approx(0.25, rel=1e-4)
    assert findings.worst == "y"


def test_another_type_or_shape_is_wrong(exact: torch.Tensor) -> None:
    assert problems(case(y=exact), {"y": exact}) == ["example: y is float64[1000], in eager float32[1000]"]
    assert problems(case(y=exact), {"y": exact.float()[None]}) == [
        "example: y is float32[1, 1000], in eager float32[1000]"
    ]


def test_what_a_backward_gives_beside_gradients_is_compared(exact: torch.Tensor) -> None:
    """Every result of a Part is asked for where a fault is searched: masks and indices are among them."""
    mask = case(**{"gradient of x": exact, "gradient of output 1": exact > 0})
    assert problems(mask, {"gradient of x": exact.float(), "gradient of output 1": exact > 0}) == []
    (problem,) = problems(mask, {"gradient of x": exact.float(), "gradient of output 1": exact <= 0})
    assert problem == "example: 1000 of 1000 elements of gradient of output 1 differ"


def test_a_missing_and_a_surplus_tensor_are_wrong(exact: torch.Tensor) -> None:
    assert problems(case(y=exact), {"z": exact.float()}) == [
        "example: there is no y",
        "example: there is a z, which eager does not have",
    ]


def test_integers_have_to_be_equal() -> None:
    indices = torch.arange(6)
    assert problems(case(y=indices), {"y": indices.clone()}) == []
    assert problems(case(y=indices), {"y": indices.clamp(max=3)}) == ["example: 2 of 6 elements of y differ"]


def test_infinities_and_nans_have_to_be_where_eagers_are() -> None:
    special = torch.tensor([1.0, float("inf"), float("-inf"), float("nan")], dtype=torch.float64)
    assert problems(case(y=special), {"y": special.float()}) == []
    assert problems(case(y=special), {"y": -special.float()}) == ["example: y has other infinities or NaNs than eager"]


def test_rounding_where_the_true_gradient_is_zero_is_right() -> None:
    large, none = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    reference = Case(
        {},
        {"gradient of w": large.float(), "gradient of b": none.float()},
        {"gradient of w": large, "gradient of b": none},
    )
    assert problems(reference, {"gradient of w": large.float(), "gradient of b": none.float() + 1e-9}) == []
    assert problems(reference, {"gradient of w": large.float(), "gradient of b": none.float() + 1e-3}) != []


def test_rounding_where_the_true_running_mean_is_zero_is_right() -> None:
    mean, variance = torch.zeros(3, dtype=torch.float64), torch.full((3,), 0.81, dtype=torch.float64)
    names = ("buffer norm.running_mean", "buffer norm.running_var")
    exact = dict(zip(names, (mean, variance), strict=True))
    reference = Case({}, {n: t.float() for n, t in exact.items()}, exact)
    for off, is_right in ((5e-6, True), (2e-5, False)):
        got = {names[0]: mean.float() + off, names[1]: variance.float()}
        assert (problems(reference, got) == []) is is_right


def test_without_float64_the_reference_is_eager(exact: torch.Tensor) -> None:
    findings = Findings()
    findings.add("example", Case({}, {"y": exact.float()}, None), {"y": exact.float()})
    assert findings.problems == []
    assert not findings.exact


def test_empty_tensors_compare() -> None:
    empty = torch.empty(0, 3, dtype=torch.float64)
    assert problems(case(y=empty), {"y": empty.float()}) == []


def test_what_a_rounding_of_the_inputs_does_is_allowed_to_everyone(exact: torch.Tensor) -> None:
    eager, got = exact.float(), exact.float() + 0.01
    assert problems(Case({}, {"y": eager}, {"y": exact}, {"y": 0.002}), {"y": got}) == []
    assert problems(Case({}, {"y": eager}, {"y": exact}, {"y": 0.001}), {"y": got}) != []
