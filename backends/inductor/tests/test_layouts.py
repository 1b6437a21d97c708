"""What a forward saves lies as Inductor likes, and its backward is generated for that."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

import fairlead
from fairlead.interpret import to_fx
from fairlead.ir import parse_graph
from fairlead_inductor._layouts import Layouts, row_major_gradients


def convolving() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)
    )


@pytest.mark.parametrize("dynamic", [False, True])
def test_saved_images_have_channels_last_unless_sizes_are_symbols(dynamic: bool) -> None:
    torch._dynamo.reset()
    model = convolving()
    twin = copy.deepcopy(model)
    program = fairlead.compile(model, backend="inductor", dynamic=dynamic, fallback=())
    saved: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    for _ in range(2):
        x = torch.randn(2, 3, 12, 12)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            result = program(x)
        result.square().sum().backward()
        twin(x).square().sum().backward()
    assert result.is_contiguous()
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-4)
        assert mine.grad is not None
        assert mine.grad.stride() == mine.stride()
    computed = [t for t in saved if t.dim() == 4 and t.shape[1:] == (8, 12, 12)]
    assert computed
    assert all(t.is_contiguous() for t in computed) is dynamic


def backward() -> Layouts:
    text = """graph @g backward {
  in %0 saved "x" : f32[4, 2, 3]
  in %1 tangent "t" : f32[2, 3]
  %2 = aten.mul.Tensor(%0, %1) : f32[4, 2, 3]
  out %2 gradient
}"""
    return Layouts(parse_graph(text))


def test_saved_tensors_are_taken_as_they_lay_first() -> None:
    layouts = backward()
    turned, gradient = torch.randn(3, 2, 4).permute(2, 1, 0), torch.randn(2, 3)
    layouts.meet([turned, gradient])
    assert layouts.of(0, {}) == turned.stride()
    assert layouts.fit([turned, gradient], [])[0] is turned
    (other, _) = layouts.fit([turned.contiguous(), gradient], [])
    assert other.stride() == turned.stride()
    assert torch.equal(other, turned)


def test_expanded_tensors_are_laid_out_as_captured() -> None:
    layouts = backward()
    x = torch.randn(1, 2, 3).expand(4, 2, 3)
    layouts.meet([x, torch.randn(2, 3)])
    assert layouts.fit([x, torch.randn(2, 3)], [])[0].stride() == (6, 3, 1)


def test_rows_that_a_forward_has_padded_are_read_so() -> None:
    layouts = backward()
    padded, gradient = torch.randn(4, 2, 8)[..., :3], torch.randn(2, 3)
    layouts.meet([padded, gradient])
    assert layouts.of(0, {}) == (16, 8, 1)
    assert layouts.fit([padded, gradient], [])[0] is padded


def test_gradients_have_strides_of_their_shape_where_dimensions_are_one() -> None:
    text = """graph @g backward {
  in %0 saved "x" : f32[1, 1, 2, 3]
  %1 = aten.permute.default(%0, [2, 3, 0, 1]) : f32[2, 3, 1, 1]
  out %1 gradient
}"""
    graph, given = parse_graph(text), torch.randn(1, 1, 2, 3)
    assert to_fx(graph)(given)[0].stride() == (3, 1, 6, 6)
    (found,) = row_major_gradients(to_fx(graph), graph)(given)
    assert found.stride() == (3, 1, 1, 1)
    assert torch.equal(found, given.permute(2, 3, 0, 1))


@pytest.mark.parametrize(("kind", "is_row_major"), [("backward", True), ("inference", False)])
def test_gradients_of_images_are_laid_out_as_captured_within(kind: str, is_row_major: bool) -> None:
    text = """graph @g KIND {
  in %0 saved "x" : f32[2, 3, 4, 5]
  in %1 saved "y" : f32[2, 3, 4, 5] strides[60, 1, 15, 3]
  %2 = aten.neg.default(%0) : f32[2, 3, 4, 5]
  %3 = aten.neg.default(%1) : f32[2, 3, 4, 5] strides[60, 1, 15, 3]
  out %2 gradient
  out %3 gradient
}"""
    roles = text if kind == "backward" else text.replace("gradient", "user").replace("saved", "user")
    graph = parse_graph(roles.replace("KIND", kind))
    given = [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last) for _ in range(2)]
    first, second = row_major_gradients(to_fx(graph), graph)(*given)
    assert torch.equal(first, -given[0])
    assert first.is_contiguous() is is_row_major
    assert second.stride() == given[1].stride()
