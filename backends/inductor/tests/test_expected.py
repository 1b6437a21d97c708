"""Inputs are compared with what code was generated for all at once, in place of an assertion for each in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairlead.ir import Graph, parse_graph
from fairlead_inductor import InductorOptions, _expected
from fairlead_inductor._executable import InductorExecutable
from fairlead_inductor._expected import Expected
from fairlead_inductor._layouts import Layouts

_ASSERTION = re.compile(r"assert_size_stride\w*\(\(?arg")
"""Of each input, or from torch 2.15 on of several at once."""


def graph(size: str = "3", symbol: str = "") -> Graph:
    return parse_graph(
        f"""{symbol}graph @g inference {{
  in %0 parameter "weight" : f32[2, 3]
  in %1 user "x" : f32[{size}, 2, 3]
  %2 = aten.mul.Tensor(%0, %1) : f32[{size}, 2, 3]
  out %2 user
}}"""
    )


def executable(of: Graph) -> InductorExecutable:
    return InductorExecutable(of, InductorOptions())


def code(made: InductorExecutable) -> str:
    return "".join(made.readable().values())


def test_generated_code_asserts_nothing_that_was_compared_already() -> None:
    made = executable(graph())
    weight, x = torch.randn(2, 3), torch.randn(3, 2, 3)
    for _ in range(2):
        (found,) = made([weight, x])
        assert torch.equal(found, weight * x)
    assert "empty_strided_cpu" in code(made)
    assert not _ASSERTION.search(code(made))


def test_generated_code_asserts_where_sizes_are_symbols() -> None:
    made = executable(graph("s0", "symbol s0 in [2, inf] from in1.dim0\n"))
    (found,) = made([torch.ones(2, 3), torch.ones(5, 2, 3)])
    assert found.shape == (5, 2, 3)
    assert _ASSERTION.search(code(made))


def test_generated_code_asserts_where_torch_has_no_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_expected, "_TensorGuards", None)
    made = executable(graph())
    (found,) = made([torch.ones(2, 3), torch.ones(3, 2, 3)])
    assert torch.equal(found, torch.ones(3, 2, 3))
    assert _ASSERTION.search(code(made))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (torch.ones(2, 2, 3), r"of shape \[2, 2, 3\]"),
        (torch.ones(3, 2, 3, dtype=torch.float64), "is torch.float64"),
    ],
)
def test_other_inputs_than_the_code_is_for_are_an_error(other: Tensor, said: str) -> None:
    made = executable(graph())
    weight, x = torch.randn(2, 3), torch.randn(3, 2, 3)
    made([weight, x])
    with pytest.raises(ValueError, match=said):
        made([weight, other])
    (found,) = made([weight, x])
    assert torch.equal(found, weight * x)


def test_inputs_that_lie_otherwise_are_laid_out_anew() -> None:
    """Before torch 2.13 nothing else looks at how weights lie, whose ``data`` may be exchanged."""
    made = executable(graph())
    weight, x = torch.randn(2, 3), torch.randn(3, 2, 3)
    made([weight, x])
    for _ in range(2):
        for other in (weight.t().contiguous().t(), torch.randn(2, 8)[:, ::3]):
            for images in (x, x.transpose(1, 2).contiguous().transpose(1, 2)):
                (found,) = made([other, images])
                assert torch.equal(found, other * images)


def test_a_buffer_that_is_written_has_to_lie_as_it_was_captured() -> None:
    made = executable(
        parse_graph(
            """graph @g inference {
  in %0 buffer "count" : f32[2, 3]
  in %1 user "x" : f32[2, 3]
  %2 = aten.add.Tensor(%0, %1, 1) : f32[2, 3]
  %3 = aten.mul.Tensor(%1, %1) : f32[2, 3]
  out %2 mutation -> in0
  out %3 user
}"""
        )
    )
    count, x = torch.zeros(2, 3), torch.ones(2, 3)
    made([count, x])
    assert made.writes
    assert torch.equal(count, x)
    with pytest.raises(ValueError, match="count"):
        made([torch.zeros(3, 2).t(), x])


def test_what_is_no_matter_to_the_code_may_change() -> None:
    made = executable(graph())
    x = torch.randn(3, 2, 3)
    for weight in (torch.ones(2, 3), torch.nn.Parameter(torch.ones(2, 3)), torch.ones(2, 3, requires_grad=True)):
        (found,) = made([weight, x])
        assert torch.equal(found, x)
    with torch.inference_mode():
        (found,) = made([torch.ones(2, 3), x])
    assert torch.equal(found, x)


def test_what_has_stayed_where_it_was_is_not_compared() -> None:
    expected = Expected(graph(), Layouts(graph()), steady=[0])
    weight, x = torch.randn(2, 3), torch.randn(3, 2, 3)
    assert not expected.are([weight, x], stayed=True)
    expected.accept([weight, x])
    assert expected.are([weight, x], stayed=True)
    assert expected.are([weight[:1], x], stayed=True)
    assert not expected.are([weight[:1], x])
    assert not expected.are([weight, x[:1]], stayed=True)


def test_weights_alone_are_known_by_their_addresses() -> None:
    expected = Expected(graph(), Layouts(graph()), steady=[0, 1])
    inputs = [torch.randn(2, 3), torch.randn(3, 2, 3)]
    expected.accept(inputs)
    assert expected.are(inputs, stayed=True)


def test_torchs_own_code_of_the_same_graph_asserts_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are in one cache on disk, which must not take one for the other."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    executable(graph())([torch.ones(2, 3), torch.ones(3, 2, 3)])
    assert not asserting(tmp_path)
    torch._dynamo.reset()
    torch.compile(lambda weight, x: weight * x)(torch.ones(2, 3), torch.ones(3, 2, 3))
    assert asserting(tmp_path)


def asserting(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.py") if _ASSERTION.search(path.read_text())]
