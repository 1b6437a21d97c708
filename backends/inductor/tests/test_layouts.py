"""What a forward saves lies as Inductor likes, and its backward is generated for that."""

from __future__ import annotations

import copy
import operator

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

import fairlead
from fairlead.ir import Kind, parse_graph
from fairlead_inductor import InductorOptions
from fairlead_inductor._executable import InductorExecutable
from fairlead_inductor._layouts import Layouts, channels_last, laying_out, weighs_more_than_images

_BATCH = 16
"""So many images oneDNN convolves, whatever the number of threads; of fewer ATen's own kernel is quicker on one thread,
and its results are row-major."""


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
        x = torch.randn(_BATCH, 3, 12, 12)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            result = program(x)
        result.square().mean().backward()
        twin(x).square().mean().backward()
    assert result.is_contiguous()
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)
        assert mine.grad is not None
        assert mine.grad.stride() == mine.stride()
    computed = [t for t in saved if t.dim() == 4 and t.shape[1:] == (8, 12, 12)]
    assert computed
    assert {t.is_contiguous() for t in computed} == {dynamic}


def backward() -> Layouts:
    text = """graph @g backward {
  in %0 saved "x" : f32[4, 2, 3]
  in %1 tangent "t" : f32[2, 3]
  %2 = aten.mul.Tensor(%0, %1) : f32[4, 2, 3]
  out %2 intermediate
}"""
    return Layouts(parse_graph(text))


def fitted(layouts: Layouts, *inputs: Tensor) -> list[Tensor]:
    given = list(inputs)
    layouts.fit(given, [])
    return given


def test_saved_tensors_are_taken_as_they_lay_first() -> None:
    layouts = backward()
    turned, gradient = torch.randn(3, 2, 4).permute(2, 1, 0), torch.randn(2, 3)
    layouts.meet([turned, gradient])
    assert layouts.of(0, {}) == turned.stride()
    assert fitted(layouts, turned, gradient)[0] is turned
    (other, _) = fitted(layouts, turned.contiguous(), gradient)
    assert other.stride() == turned.stride()
    assert torch.equal(other, turned)


def test_expanded_tensors_are_laid_out_as_captured() -> None:
    layouts = backward()
    x = torch.randn(1, 2, 3).expand(4, 2, 3)
    layouts.meet([x, torch.randn(2, 3)])
    assert fitted(layouts, x, torch.randn(2, 3))[0].stride() == (6, 3, 1)


def test_rows_that_a_forward_has_padded_are_read_so() -> None:
    layouts = backward()
    padded, gradient = torch.randn(4, 2, 8)[..., :3], torch.randn(2, 3)
    layouts.meet([padded, gradient])
    assert layouts.of(0, {}) == (16, 8, 1)
    assert fitted(layouts, padded, gradient)[0] is padded


def run(text: str, *inputs: Tensor) -> list[Tensor]:
    return list(InductorExecutable(parse_graph(text), InductorOptions())(inputs))


def test_gradients_have_strides_of_their_shape_where_dimensions_are_one() -> None:
    text = """graph @g backward {
  in %0 saved "x" : f32[1, 1, 2, 3]
  %1 = aten.permute.default(%0, [2, 3, 0, 1]) : f32[2, 3, 1, 1]
  %2 = aten.neg.default(%1) : f32[2, 3, 1, 1]
  out %2 intermediate
}"""
    given = torch.randn(1, 1, 2, 3)
    (found,) = run(text, given)
    assert found.stride() == (3, 1, 1, 1)
    assert torch.equal(found, -given.permute(2, 3, 0, 1))


@pytest.mark.parametrize("kind", [Kind.backward, Kind.inference])
def test_what_a_caller_sees_is_laid_out_as_captured_within(kind: Kind) -> None:
    text = """graph @g inference {
  in %0 saved "x" : f32[2, 3, 4, 5]
  in %1 saved "y" : f32[2, 3, 4, 5] strides[60, 1, 15, 3]
  %2 = aten.neg.default(%0) : f32[2, 3, 4, 5]
  %3 = aten.neg.default(%1) : f32[2, 3, 4, 5] strides[60, 1, 15, 3]
  out %2 intermediate
  out %3 intermediate
}"""
    given = [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last) for _ in range(2)]
    first, second = run(text.replace("inference", kind), *given)
    assert torch.equal(first, -given[0])
    assert first.is_contiguous()
    assert second.stride() == given[1].stride()


def test_results_are_the_right_ones_beside_those_that_generated_code_writes() -> None:
    """An image that is saved keeps the layout of its input, one that a caller sees does not."""
    text = """graph @g forward {
  in %0 saved "x" : f32[2, 3, 4, 5]
  in %1 buffer "b" : f32[2]
  %2 = aten.exp.default(%1) : f32[2]
  %3 = aten.neg.default(%0) : f32[2, 3, 4, 5]
  %4 = aten.exp.default(%0) : f32[2, 3, 4, 5]
  out %2 mutation -> in1
  out %3 intermediate
  out %4 saved
}"""
    given, buffer = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.zeros(2)
    written, seen, saved = run(text, given, buffer)
    assert written is buffer
    assert torch.equal(buffer, torch.ones(2))
    assert seen.is_contiguous()
    assert saved.is_contiguous(memory_format=torch.channels_last)


def test_a_part_of_a_padded_product_is_laid_out_within_whatever_is_said_of_it() -> None:
    text = """graph @g inference {
  in %0 user "x" : f32[4, 5]
  %1 = aten.view.default(%0, [2, 2, 5]) : f32[2, 2, 5]
  out %1 intermediate
}"""
    made = torch.fx.Graph()
    with FakeTensorMode():
        padded, said = torch.empty(4, 8), torch.empty(4, 5)
    node = made.placeholder("x")
    part = made.call_function(torch.ops.aten.slice.Tensor, (node, 1, 0, 5))
    result = made.call_function(torch.ops.aten.view.default, (part, [2, 2, 5]))
    for each, value in ((node, padded), (part, said), (result, said.view(2, 2, 5))):
        each.meta["val"] = value
    made.output((result,))
    found: list[torch.fx.GraphModule] = []
    laying_out(parse_graph(text), (), found.append)(torch.fx.GraphModule({}, made))
    x = torch.randn(4, 8)
    (got,) = found[0](x)
    assert got.is_contiguous()
    assert torch.equal(got, x[:, :5].reshape(2, 2, 5))
    assert result.meta["val"].stride() == (16, 8, 1)


@pytest.mark.parametrize("turns_weights", [False, True])
@pytest.mark.parametrize("image_format", [torch.contiguous_format, torch.channels_last])
def test_images_of_a_caller_meet_gradients_with_channels_last(
    image_format: torch.memory_format, turns_weights: bool
) -> None:
    """A weight beside an image that lies so ATen itself turns, unless that is to be done here."""
    made = torch.fx.Graph()
    with FakeTensorMode():
        image, weight = torch.empty(2, 3, 8, 8).to(memory_format=image_format), torch.empty(4, 3, 3, 3)
        gradient = torch.empty(2, 4, 6, 6).to(memory_format=torch.channels_last)
    given = []
    for name, value in (("gradient", gradient), ("image", image), ("weight", weight)):
        node = made.placeholder(name)
        node.meta["val"] = value
        given.append(node)
    how = ([0], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, False])
    results = made.call_function(torch.ops.aten.convolution_backward.default, (*given, *how))
    result = made.call_function(operator.getitem, (results, 1))
    made.output((result,))
    plain, found = torch.fx.GraphModule({}, copy.deepcopy(made)), []
    channels_last(found.append, turns_weights=turns_weights)(torch.fx.GraphModule({}, made))
    (call,) = found[0].graph.find_nodes(op="call_function", target=torch.ops.aten.convolution_backward.default)
    is_turned = turns_weights or image_format is torch.contiguous_format
    assert [x.meta["val"].is_contiguous(memory_format=torch.channels_last) for x in call.args[:3]] == [
        True,
        True,
        is_turned,
    ]
    assert ("val" in result.meta) is is_turned  # told anew, of what it is computed of now
    tensors = [torch.randn(t.shape) for t in (gradient, image, weight)]
    torch.testing.assert_close(found[0](*tensors)[0], plain(*tensors)[0])


@pytest.mark.parametrize(
    ("size", "device", "weighs_more"),
    [("4", "cpu", True), ("64", "cpu", False), ("b", "cpu", False), ("4", "cuda:0", False)],
)
def test_weights_that_have_more_elements_than_images_are_not_laid_out_in_each_call(
    size: str, device: str, weighs_more: bool
) -> None:
    symbol = "symbol b in [2, 64] from in0.dim2\n" if size == "b" else ""
    text = f"""{symbol}graph @g inference {{
  in %0 user "x" : f32[1, 64, {size}, 4] @{device}
  in %1 parameter "w" : f32[64, 64, 1, 1] @{device}
  %2 = aten.convolution.default(%0, %1, none, [1], [0], [1], false, [0], 1) : f32[1, 64, {size}, 4] @{device}
  out %2 user
}}"""
    assert weighs_more_than_images(parse_graph(text.replace(" @cpu", ""))) is weighs_more
