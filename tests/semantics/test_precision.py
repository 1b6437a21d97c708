"""``precision``: one floor for every backend, torch's own setting for torch's kernels, and no setting left changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest
import torch

import fairlead
from fairlead.backend import Executable, Options, Precision, Relaxable
from fairlead.errors import ArgumentError
from fairlead.ir import Graph
from fairlead.registry import registry

from .test_failures import Faulty

PRECISIONS: tuple[Precision, ...] = ("highest", "high", "medium")


class Bits(Options, frozen=True, kw_only=True):
    """As many bits as a product may have."""

    bits: int = 24


class Narrow(Faulty):
    """A backend that has a kernel for each precision, and tells which one it was to take."""

    options_type = Bits

    def __init__(self) -> None:
        super().__init__()
        self.compiled: list[int] = []

    def options_for_precision(self, options: Bits, precision: Precision, /) -> Bits:
        return msgspec.structs.replace(options, bits={"highest": 24, "high": 11, "medium": 8}[precision])

    def compile(self, graph: Graph, options: Any, constants: Mapping[int, torch.Tensor], /) -> Executable:
        self.compiled.append(options.bits)
        return super().compile(graph, options, constants)


@pytest.fixture
def narrow() -> Iterator[Narrow]:
    backend = Narrow()
    registry.register(backend)
    yield backend
    registry.unregister("faulty")


@pytest.fixture(autouse=True)
def _torch_as_it_was() -> Iterator[None]:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(before[0])
    torch._C._set_cudnn_allow_tf32(before[1])  # which is allowed in a process where OpInfo was imported, too


def _settings() -> tuple[object, ...]:
    own = (torch.backends.cuda.matmul, torch.backends.mkldnn, torch.backends.cudnn)
    found = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    return (*found, *(getattr(each, "fp32_precision", None) for each in own if torch.__version__ >= "2.9"))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_backend_stays_above_the_floor_and_leaves_torch_as_it_was(backend: str, precision: Precision) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    compiled = fairlead.compile(model, backend=backend, precision=precision, verify="always", fallback="eager")
    before = _settings()
    with torch.no_grad():
        compiled(torch.randn(8, 64))
    assert _settings() == before


def test_settings_are_bracketed_where_torch_takes_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    names = torch.backends.disable_global_flags.__globals__
    monkeypatch.setitem(names, "__allow_nonbracketed_mutation_flag", False)
    x = torch.randn(4, 8)
    layer = torch.nn.Linear(8, 8)
    with torch.no_grad(), pytest.raises(RuntimeError, match="not allowed"):
        torch.backends.cudnn.allow_tf32 = False
    with torch.no_grad():
        found = fairlead.compile(layer, backend="eager", precision="medium")(x)
    torch.testing.assert_close(found, layer(x), rtol=1e-1, atol=1e-1)
    assert torch.backends.flags_frozen()


def test_what_is_no_longer_above_the_floor_is_wrong(narrow: Narrow) -> None:
    narrow.on_run = lambda call, out: [t * (1 + 1e-3) for t in out]
    assert torch.equal(_double("high")(torch.ones(2)), torch.full((2,), 2.002))
    with pytest.raises(fairlead.FairleadError, match=r"^FL507: .* is allowed"):
        _double("highest")(torch.ones(2))


def test_what_torch_is_set_to_is_accepted_where_a_program_says_nothing(narrow: Narrow) -> None:
    narrow.on_run = lambda call, out: [t * (1 + 1e-3) for t in out]
    torch.set_float32_matmul_precision("high")
    assert torch.equal(_double(None)(torch.ones(2)), torch.full((2,), 2.002))
    torch.set_float32_matmul_precision("highest")
    with pytest.raises(fairlead.FairleadError, match=r"^FL507: "):
        _double(None)(torch.ones(2))


def _double(precision: Precision | None, **arguments: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    torch._dynamo.reset()
    return fairlead.compile(lambda x: x + x, backend="faulty", precision=precision, verify="always", **arguments)


def test_a_backend_is_told_in_its_own_options(narrow: Narrow) -> None:
    assert isinstance(narrow, Relaxable)
    for precision in (None, *PRECISIONS):
        _double(precision)(torch.ones(2))
    _double(None, options={"precision": "medium"})(torch.ones(2))
    _double("high", options={"bits": 11})(torch.ones(2))
    assert narrow.compiled == [24, 24, 11, 8, 8, 11]


def test_two_wishes_that_differ_are_an_error(narrow: Narrow) -> None:
    with pytest.raises(ArgumentError) as caught:
        _double("highest", options={"bits": 8})
    what, where, following = str(caught.value).splitlines()
    assert what == (
        "FL203: precision is 'highest' and the option 'bits' of backend 'faulty' is 8: they ask for different things"
    )
    assert (where, following) == (
        "  from: fairlead.compile; the precision makes it 24",
        "  next: pass one of them",
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [("openvino", ("f32", "f32", "bf16")), ("tensorrt", ("f32", "tf32", "tf32"))],
)
def test_what_the_options_of_our_backends_become(name: str, expected: tuple[str, ...]) -> None:
    backend: Any = registry.get(name)
    assert tuple(backend.options_for_precision(backend.options_type(), p).precision for p in PRECISIONS) == expected


def test_an_option_of_that_name_is_the_backends_own() -> None:
    options: Any = {"backend": "openvino", "precision": "bf16"}
    compiled = torch.compile(lambda x: x + x, backend="fairlead", options=options)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))


def test_torchs_kernels_run_with_torchs_setting(narrow: Narrow) -> None:
    seen: list[str] = []
    narrow.on_run = lambda call, out: seen.append(torch.get_float32_matmul_precision()) or out  # type: ignore[func-returns-value]
    torch.set_float32_matmul_precision("medium")
    for precision in (None, *PRECISIONS):
        _double(precision)(torch.ones(2))
    torch.set_float32_matmul_precision("highest")
    for precision in PRECISIONS:
        _double(precision)(torch.ones(2))
    # torch on a CPU has nothing between float32 and bfloat16, and float32 is high
    assert seen == ["medium", "highest", "high", "medium", "highest", "highest", "medium"]


def test_threads_with_other_wishes_wait_for_each_other(narrow: Narrow) -> None:
    seen: set[tuple[Precision, str]] = set()
    barrier = threading.Barrier(2)

    def call(precision: Precision) -> None:
        from fairlead._precision import set_to

        barrier.wait()
        for _ in range(200):
            with set_to(precision, on_cuda=False):
                seen.add((precision, torch.get_float32_matmul_precision()))

    threads = [threading.Thread(target=call, args=(p,)) for p in ("highest", "medium")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {("highest", "highest"), ("medium", "medium")}
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("precision", ["f32", "low", 1, True])
def test_what_is_no_precision_is_an_error(precision: Any) -> None:
    with pytest.raises(ArgumentError, match=r'^FL203: precision is .*\n  from: fairlead.compile\n  next: pass "hi'):
        fairlead.compile(torch.nn.Linear(2, 2), backend="eager", precision=precision)
