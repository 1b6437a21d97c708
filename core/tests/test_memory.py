"""Outputs share memory, and inputs are overwritten, as in eager, whatever the backend copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

import fairlead
from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Node
from fairlead.registry import registry


class Copies:
    """Takes every node; each of its results is a row-major copy of what torch computes from row-major copies."""

    name = "copies"
    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities(
        devices=("cpu",),
        dtypes=tuple(DType),
        training=True,
        dynamic_shapes=True,
        bakes_constants=True,
        keeps=(),
    )

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, Tensor], /) -> Any:
        return Executable(to_fx(graph).forward)


class Executable:
    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, run: Callable[..., Sequence[Tensor]]) -> None:
        self._run = run

    def __call__(self, inputs: Sequence[Any], /) -> list[Tensor]:
        given = [copied(x) if isinstance(x, Tensor) else x for x in inputs]
        return [copied(x) for x in self._run(*given)]


def copied(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format)


@pytest.fixture(scope="module", autouse=True)
def backend() -> Iterator[None]:
    registry.register(Copies())
    yield
    registry.unregister("copies")


def views_of_a_result(x: Tensor) -> Any:
    y = x * 2
    y[1:].copy_(x[:-1])
    return y, y[0], y.t(), y


def views_of_an_input(x: Tensor) -> Any:
    return x, x.t(), x[1:], x + 1


def a_part_of_an_input(x: Tensor) -> Any:
    first, rest = x.split([1, x.shape[0] - 1])
    return rest, first + 1


def a_part_that_is_read_too(x: Tensor) -> Any:
    rest = x[1:].t()
    return rest, rest @ rest.t()


def a_part_after_a_write(x: Tensor) -> Any:
    first, rest = x.split([1, x.shape[0] - 1])
    first.mul_(3)
    return rest, first + 1


def expanded(x: Tensor) -> Any:
    y = x.expand(2, *x.shape)
    return y, y.contiguous()


def windows(x: Tensor) -> Any:
    return x.unfold(0, 2, 1), (x * 1).unfold(0, 2, 1)


def written_through_a_view(x: Tensor) -> Any:
    x.t().mul_(2)
    x[0].add_(1)
    return x.sum()


def copies(x: Tensor) -> Any:
    return x.clone(), torch.cat([x]), torch.stack([x[0]]), x.pow(1), x.reshape(-1), x.t().reshape(-1)


def complex_numbers(x: Tensor) -> Any:
    c = torch.view_as_complex(x.reshape(-1, 2).contiguous())
    return torch.view_as_real(c * c), c.real, c.imag


def random_numbers(x: Tensor) -> Any:
    y = torch.randn_like(x)
    noise = torch.bernoulli(torch.sigmoid(x)), torch.randint(0, 9, (3,)), torch.randperm(5)
    return y, *noise, torch.nn.functional.dropout(x, 0.3), torch.rand(3)


PROGRAMS = [
    views_of_a_result,
    views_of_an_input,
    a_part_of_an_input,
    a_part_that_is_read_too,
    a_part_after_a_write,
    expanded,
    windows,
    written_through_a_view,
    copies,
    complex_numbers,
    random_numbers,
]

LAYOUTS: dict[str, Callable[[], Tensor]] = {
    "row-major": lambda: torch.arange(12.0).view(3, 4),
    "within a larger tensor": lambda: torch.arange(40.0)[2:34].view(4, 8)[1:, 2:6],
}


def in_memory(results: Any, x: Tensor) -> list[list[int]]:
    """For each result, itself or others and the input (the last) whose memory it is in."""
    tensors = [t for t in tree_leaves(results) if isinstance(t, Tensor)] + [x]
    addresses = [t.untyped_storage().data_ptr() for t in tensors]
    return [[i for i, a in enumerate(addresses) if a == b] for b in addresses]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results_share_memory_as_in_eager(program: Callable[[Tensor], Any], dynamic: bool, layout: str) -> None:
    torch._dynamo.reset()
    compiled = fairlead.compile(program, backend="copies", fallback=(), dynamic=dynamic)
    x, y = LAYOUTS[layout](), LAYOUTS[layout]()
    torch.manual_seed(0)
    wanted = program(x)
    torch.manual_seed(0)
    found = compiled(y)
    assert torch.equal(x, y)
    for a, b in zip(tree_leaves(wanted), tree_leaves(found), strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=0)
        assert (b.dtype, b.stride(), b.storage_offset()) == (a.dtype, a.stride(), a.storage_offset())
    assert in_memory(found, y) == in_memory(wanted, x)
    kept = [t.clone() for t in tree_leaves(found)]
    compiled(LAYOUTS[layout]() + 100)
    assert all(torch.equal(a, b) for a, b in zip(kept, tree_leaves(found), strict=True))
