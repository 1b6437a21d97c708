"""Stretches of convolutions give torch's numbers, and where oneDNN would make numbers of NaN, torch's ops do."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch

from fairlead import interpret
from fairlead.ir import Builder, DType, Graph, Role, Value
from fairlead_ipex import IpexOptions, _executable, _stretches, backend
from fairlead_ipex._executable import IpexExecutable
from fairlead_ipex._recurrent import lstm_of_packed

ONE, ZERO = (1, 1), (0, 0)
IMAGES = (2, 16, 20, 18)

pytestmark = pytest.mark.skipif(not _stretches.is_available(), reason="this torch has no oneDNN Graph")


def compiled(graph: Graph, constants: Mapping[int, torch.Tensor], **options: object) -> IpexExecutable:
    return backend.compile(graph, IpexOptions(**options), constants)


def stretches(run: IpexExecutable) -> list[str]:
    """What oneDNN Graph has of each."""
    return [text for name, text in run.readable().items() if name.startswith("stretch")]


def close(run: IpexExecutable, graph: Graph, inputs: Sequence[torch.Tensor]) -> None:
    """The results are the graph's in float64, NaN for NaN, and what was given is as it was."""
    free = [x for i, x in enumerate(inputs) if i not in run.baked]
    before = [x.clone() for x in free]
    for got, expected in zip(run(free), interpret.run(graph, [x.double() for x in inputs]), strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=2e-6 * largest(expected), equal_nan=True)
    torch.testing.assert_close(free, before, rtol=0, atol=0, equal_nan=True)


def largest(expected: torch.Tensor) -> float:
    """The size of its largest number, one at the least."""
    finite = expected[expected.isfinite()].abs()
    return max(1.0, float(finite.max()) if finite.numel() else 0.0)


class Net:
    """A builder of graphs of convolutions with random weights."""

    def __init__(self, *shape: int) -> None:
        torch.manual_seed(1)
        self.b = Builder()
        self.x = self.b.input(f"f32{list(shape or IMAGES)}")
        self.constants: dict[int, torch.Tensor] = {}

    def weight(self, *shape: int) -> Value:
        self.constants[len(self.constants) + 1] = torch.randn(shape) / math.sqrt(math.prod(shape[1:]) or 1)
        return self.b.input(f"f32{list(shape)}", role=Role.parameter)

    def convolved(self, x: Value, *shape: int, stride: int = 1, padding: int = 1, groups: int = 1) -> Value:
        args = self.weight(*shape), self.weight(shape[0]), (stride,) * 2, (padding,) * 2, ONE, False, ZERO, groups
        return self.b.op("aten.convolution.default", x, *args)

    def compiled(self, *outputs: Value, **options: object) -> tuple[IpexExecutable, Graph]:
        for value in outputs:
            self.b.output(value)
        graph = self.b.graph()
        return compiled(graph, self.constants, **options), graph

    def inputs(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x, *self.constants.values()]


def residual(depth: int, scale: float = 1.0, **options: object) -> tuple[IpexExecutable, Graph, Net]:
    """So many blocks of two convolutions and a sum."""
    net = Net()
    y = net.x
    for _ in range(depth):
        z = net.b.op("aten.relu.default", net.convolved(y, 16, 16, 3, 3))
        y = net.b.op("aten.relu.default", net.b.op("aten.add.Tensor", net.convolved(z, 16, 16, 3, 3), y))
    for tensor in net.constants.values():
        tensor *= scale
    return *net.compiled(y, **options), net


ACTIVATIONS: Mapping[str, tuple[object, ...]] = {
    "relu": (),
    "sigmoid": (),
    "tanh": (),
    "silu": (),
    "hardswish": (),
    "hardtanh": (-1, 6.0),
    "leaky_relu": (0.1,),
}


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_computed_within_the_stretch(name: str, finite: bool) -> None:
    net = Net()
    y = net.b.op(f"aten.{name}.default", net.convolved(net.x, 32, 16, 3, 3), *ACTIVATIONS[name])
    run, graph = net.compiled(net.convolved(y, 32, 32, 1, 1, padding=0), finite=finite)
    (text,) = stretches(run)
    assert "aten::" not in text.split("with prim::oneDNN")[0]
    close(run, graph, net.inputs(torch.randn(IMAGES) * 4))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 3e38, -1e30])
def test_what_might_overflow_is_torchs(number: float) -> None:
    run, graph, net = residual(2)
    assert len(stretches(run)) == 1
    x = torch.randn(IMAGES)
    x[0, 3, 4, 5] = number
    for given in (x, torch.randn(IMAGES), x.clone()):
        close(run, graph, net.inputs(given))


def test_nan_in_an_image_is_lost_where_the_caller_allows_it() -> None:
    run, _, _ = residual(1, finite=True)
    assert not run([torch.full(IMAGES, math.nan)])[0].isnan().any()


def test_a_deep_net_is_checked_on_the_way() -> None:
    run, graph, net = residual(40, scale=8.0)
    assert 1 < len(stretches(run)) < 20
    x = torch.randn(IMAGES)
    (expected,) = interpret.run(graph, [n.double() for n in net.inputs(x)])
    assert expected.max() > 3e38  # in float32 it overflows
    got, (torchs,) = run([x])[0], interpret.run(graph, net.inputs(x))
    assert got.isfinite().equal(torchs.isfinite())
    assert got.isnan().equal(torchs.isnan())


@pytest.mark.parametrize("number", [math.nan, math.inf, 1e38])
def test_weights_that_overflow_by_themselves_are_left_to_torch(number: float) -> None:
    net = Net()
    y = net.b.op("aten.relu.default", net.convolved(net.x, 16, 16, 3, 3))
    net.constants[1][2, 3, 1, 1] = number
    y = net.convolved(net.b.op("aten.relu.default", net.convolved(y, 16, 16, 3, 3)), 8, 16, 1, 1)
    run, graph = net.compiled(y)
    (expected,) = interpret.run(graph, net.inputs(x := torch.randn(IMAGES)))
    torch.testing.assert_close(run([x])[0], expected, rtol=1e-4, atol=2e-6 * largest(expected), equal_nan=True)


def geometry(kind: str) -> tuple[IpexExecutable, Graph, Net]:
    net = Net()
    match kind:
        case "grouped":
            y = net.convolved(net.x, 64, 4, 3, 3, groups=4)
        case "depthwise":
            y = net.convolved(net.convolved(net.x, 256, 16, 1, 1, padding=0), 256, 1, 3, 3, groups=256)
        case "pooled":
            y = net.convolved(net.x, 16, 16, 3, 3)
            y = net.b.ops("aten.max_pool2d_with_indices.default", y, (2, 2), (), ZERO, ONE, False)[0]
            y = net.convolved(y, 16, 16, 3, 3)
        case "pooled with places":
            y = net.convolved(net.x, 16, 16, 3, 3)
            y, places = net.b.ops("aten.max_pool2d_with_indices.default", y, (3, 3), (2, 2), ONE, ONE, True)
            net.b.output(places)
        case "padded unevenly":
            y = net.b.op("aten.relu.default", net.convolved(net.x, 16, 16, 3, 3))
            y = net.convolved(net.b.op("aten.constant_pad_nd.default", y, [0, 1, 2, 1], 0.5), 16, 16, 3, 3, stride=2)
        case "two results":
            y = net.convolved(net.x, 16, 16, 3, 3)
            net.b.output(net.b.op("aten.sin.default", y))
            y = net.b.op("aten.add.Tensor", y, y)
        case "beside":
            y = net.b.op("aten.exp.default", net.convolved(net.x, 16, 16, 3, 3))
            y = net.convolved(net.b.op("aten.cat.default", [y, net.convolved(net.x, 16, 16, 3, 3)], 1), 8, 32, 3, 3)
        case "of a vector":
            y = net.convolved(net.x, 16, 16, 3, 3)
            y = net.b.op("aten.relu.default", net.b.op("aten.add.Tensor", y, net.weight(16, 1, 1), alpha=2))
        case _:
            y = net.convolved(net.x, 16, 16, 3, 3)
            y = net.b.op("aten.sub.Tensor", net.b.op("aten.add.Tensor", y, net.x, alpha=3), 1.5)
    return *net.compiled(y), net


@pytest.mark.usefixtures("kernels")
def test_bfloat16_is_as_near_as_torchs() -> None:
    b = Builder()
    x = b.input(f"bf16{list(IMAGES)}")
    weights = [b.input(t, role=Role.parameter) for t in ("bf16[32, 16, 3, 3]", "bf16[32]", "bf16[32, 32, 3, 3]")]
    y = b.op("aten.convolution.default", x, *weights[:2], ONE, ONE, ONE, False, ZERO, 1)
    z = b.op("aten.convolution.default", b.op("aten.relu.default", y), weights[2], None, ONE, ONE, ONE, False, ZERO, 1)
    b.output(b.op("aten.relu.default", b.op("aten.add.Tensor", z, y)))
    wide = b.op("aten._to_copy.default", y, DType.f32)
    b.output(b.op("aten.relu.default", wide))
    numbers = [
        torch.randn(i.value.tensor.shape).bfloat16() / (16 if i.role is Role.parameter else 1) for i in b.graph().inputs
    ]
    run = compiled(b.graph(), dict(enumerate(numbers[1:], start=1)))
    assert stretches(run)
    expected = interpret.run(b.graph(), [n.double() for n in numbers])
    for got, right in zip(run(numbers[:1]), expected, strict=True):
        torch.testing.assert_close(got.double(), right.double(), rtol=1e-2, atol=1e-2)
    assert [got.dtype for got in run(numbers[:1])] == [torch.bfloat16, torch.float32]
    numbers[0][0, 0, 4, 4] = math.nan
    assert run(numbers[:1])[0].isnan().equal(interpret.run(b.graph(), numbers)[0].isnan())


KINDS = "grouped depthwise pooled pooled_with_places padded_unevenly two_results beside of_a_vector multiple"


@pytest.mark.parametrize("kind", KINDS.split())
def test_what_lies_between_convolutions_is_right(kind: str) -> None:
    run, graph, net = geometry(kind.replace("_", " "))
    assert stretches(run)
    for x in (torch.randn(IMAGES), torch.randn(IMAGES).contiguous(memory_format=torch.channels_last)):
        free = [x]
        wide = interpret.run(graph, [n.double() for n in net.inputs(x)])
        for got, expected in zip(run(free), wide, strict=True):
            torch.testing.assert_close(got.double(), expected.double(), rtol=1e-5, atol=1e-5)


def test_numbers_that_no_convolution_is_near_are_not_checked() -> None:
    net = Net()
    y = net.b.op("aten.mean.dim", net.convolved(net.x, 64, 16, 3, 3), [2, 3])
    y = net.b.op("aten.linear.default", net.b.op("aten.exp.default", y), net.weight(512, 64), None)
    run, graph = net.compiled(net.b.op("aten.relu.default", y))
    assert run.readable()["module.py"].count("_checked(") == 1
    close(run, graph, net.inputs(torch.randn(IMAGES)))


def test_an_lstm_behind_a_stretch_is_packed() -> None:
    """As where lines of text are read from images, a column of the image a step."""
    net = Net()
    columns = net.b.op("aten.mean.dim", net.b.op("aten.relu.default", net.convolved(net.x, 64, 16, 3, 3)), [2])
    steps = net.b.op("aten.permute.default", columns, [2, 0, 1])
    states = net.weight(1, 2, 32), net.weight(1, 2, 32)
    weights = net.weight(128, 64), net.weight(128, 32), net.weight(128), net.weight(128)
    run, graph = net.compiled(*net.b.ops("nn.lstm", steps, *states, *weights, False))
    assert len(stretches(run)) == 1
    assert any(n.target is lstm_of_packed for n in run.module.graph.nodes)
    close(run, graph, net.inputs(torch.randn(IMAGES)))


def test_a_batch_norm_is_folded_and_new_weights_are_seen() -> None:
    net = Net()
    y = net.convolved(net.x, 32, 16, 3, 3)
    norm = [net.weight(32) for _ in range(4)]
    net.constants[6] = net.constants[6].abs() + 0.5
    y = net.b.ops("aten._native_batch_norm_legit_no_training.default", y, *norm, 0.1, 1e-5)[0]
    run, graph = net.compiled(net.b.op("aten.relu.default", y))
    x = torch.randn(IMAGES)
    for _ in range(3):
        assert len(stretches(run)) == 1
        assert "batch_norm" not in "".join(run.readable().values())
        close(run, graph, net.inputs(x))
        x[0, 0, 0, 0] = math.nan
        close(run, graph, net.inputs(x))
        x[0, 0, 0, 0] = 0.0
        net.constants = {i: tensor * 1.5 for i, tensor in net.constants.items()}
        run.refit(net.constants)


def test_threads_call_it_at_once_and_their_number_may_change() -> None:
    run, graph, net = residual(3)
    images = [torch.randn(IMAGES) for _ in range(8)]
    expected = [run([x])[0] for x in images]
    got: dict[int, torch.Tensor] = {}

    def work(i: int) -> None:
        for _ in range(20):
            got[i] = run([images[i]])[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(images))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, result in enumerate(expected):
        torch.testing.assert_close(got[i], result)
    before = torch.get_num_threads()
    try:
        for threads_now in (1, 3):
            torch.set_num_threads(threads_now)
            close(run, graph, net.inputs(images[0]))
    finally:
        torch.set_num_threads(before)


def test_a_child_that_was_forked_computes_with_one_thread() -> None:
    run, _, _ = residual(2)
    x = torch.randn(IMAGES)
    expected = run([x])[0]
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # torch's own threads are not there
        os._exit(0 if torch.allclose(run([x])[0], expected, atol=1e-5) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


LET_GO = """
import ctypes, gc, sys, torch
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_stretches as tests

def compiled():
    net = tests.Net()
    y = net.x
    for shape in ((512, 16), (512, 512), (512, 512), (512, 512)):
        y = net.b.op("aten.relu.default", net.convolved(y, *shape, 3, 3))
    net.compiled(y)

held = []
for _ in range(3):
    for _ in range(6):
        compiled()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    held.append(4 * int(Path("/proc/self/statm").read_text().split()[1]))
print(held[2] - held[1])
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="what is held is read from /proc, once glibc has let go of the rest"
)
def test_memory_is_given_back() -> None:
    here = str(Path(__file__).parent)
    result = subprocess.run([sys.executable, "-c", LET_GO, here], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 800  # KB; what oneDNN keeps of six nets is 1,400 and more


def test_torchscript_and_the_environment_are_left_as_they_were() -> None:
    before, environment = torch._C._jit_llga_enabled(), dict(os.environ)
    residual(1)
    assert torch._C._jit_llga_enabled() is before
    assert dict(os.environ) == environment


def test_gradients_and_inference_mode_change_nothing() -> None:
    run, graph, net = residual(1)
    x = torch.randn(IMAGES, requires_grad=True)
    with torch.inference_mode():
        expected = run([torch.randn(IMAGES)])[0]
    assert expected.isfinite().all()
    assert not run([x])[0].requires_grad
    close(run, graph, net.inputs(x.detach()))


@pytest.mark.parametrize("torch_has_it", ["not", "by name only"])
def test_without_onednn_graph_convolutions_are_packed(torch_has_it: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if torch_has_it == "not":
        monkeypatch.setattr(_stretches, "is_available", lambda: False)
    else:
        monkeypatch.setattr(_stretches.Stretch, "is_compiled", False)
    run, graph, net = residual(1)
    assert not stretches(run)
    assert "_convolution_pointwise" in run.readable()["module.py"]
    close(run, graph, net.inputs(torch.randn(IMAGES)))


def drawing(net: Net, y: Value) -> Value:
    return net.b.op("aten.rand_like.default", y, *[None] * 5, to=y.type)


def many_passes(net: Net, y: Value) -> Value:
    for _ in range(60):
        y = net.b.op("aten.sin.default", y)
    return y


@pytest.mark.parametrize("other", [drawing, many_passes])
def test_graphs_of_more_than_convolutions_have_none(
    other: Callable[[Net, Value], Value], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_executable, "is_worth_fusing", lambda graph: False)
    net = Net()
    run, _ = net.compiled(other(net, net.convolved(net.x, 16, 16, 3, 3)))
    assert not stretches(run)
