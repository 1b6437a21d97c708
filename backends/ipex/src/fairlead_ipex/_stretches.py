"""Stretches of convolutions, each compiled as a whole by oneDNN Graph, which torch has within TorchScript."""

from __future__ import annotations

import functools
import operator
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from fairlead.ir import TensorType
from fairlead_ipex._bounds import keep_within_bounds
from fairlead_ipex._convolutions import IMAGE, Convolution, find_convolutions
from fairlead_ipex._draft import Draft, op_of, type_of
from fairlead_ipex._dtypes import TORCH, computed_in
from fairlead_ipex._in_place import reuse_memory
from fairlead_ipex._options import IpexOptions
from fairlead_ipex._packing import pack
from fairlead_ipex._post_ops import chain_of

__all__ = ["STRETCHED", "Stretch", "in_stretches", "is_available"]

_CALLS_UNTIL_COMPILED = 3
"""TorchScript notes the shapes at the first call and has oneDNN compile for them at the second."""

_CONVOLUTION = "convolution"
"""Where a node has the weights that it multiplies by."""

_PREFIX = "stretch_"
_POOL = "aten.max_pool2d_with_indices.default"
_KEPT_BY_ONEDNN = "DNNL_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY"
"""How many compiled partitions oneDNN keeps, with their weights, after those who use them have let go of them. It reads
that at the first."""

_switch = threading.Lock()


def is_available() -> bool:
    """Whether this torch has oneDNN Graph."""
    return hasattr(torch._C, "_jit_set_llga_enabled") and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def in_stretches(draft: Draft, options: IpexOptions) -> fx.GraphModule:
    """The module in which each convolution is in a stretch, or packed where oneDNN Graph does not take it.

    It raises `OutOfBoundsError` at a call with numbers for which a stretch might give others than torch, unless all are
    ``finite`` by the options.
    """
    convolutions = find_convolutions(draft)
    nodes = _with_convolutions({n for n in draft.graph.nodes if _takes(n, convolutions)}, convolutions)
    if not options.finite:
        nodes = keep_within_bounds(draft, nodes, convolutions)
    chains = functools.partial(chain_of, finite=options.finite)
    pack(draft, {n: found for n, found in convolutions.items() if n not in nodes}, options, chains)
    for node in nodes & convolutions.keys():
        node.meta[_CONVOLUTION] = convolutions[node]
        node.args = node.args[:1]
    reuse_memory(draft.graph)
    module = draft.finish()
    _join(module, nodes & set(module.graph.nodes))
    return module


class Stretch(torch.nn.Module):
    """Convolutions and what is computed between them, as one call. Images come out channels last, however they go in.

    It is compiled for the number of threads that torch has at a call: a child process that was forked may have one.
    """

    def __init__(self, graph: fx.Graph) -> None:
        super().__init__()
        self._graph = graph
        self._dtypes = [computed_in(_tensor(n).dtype) for n in graph.find_nodes(op="placeholder")]
        self._results = [TORCH[_tensor(n).dtype] for n in graph.output_node().all_input_nodes]
        self._compiled: dict[int, Callable[..., Any]] = {}
        self.text = str(self._function().graph_for(*self._examples()))

    @property
    def is_compiled(self) -> bool:
        """Whether oneDNN Graph has compiled anything of it, which not every torch that knows its name can."""
        return "prim::oneDNNFusionGroup" in self.text

    def forward(self, *inputs: torch.Tensor) -> Any:
        """A tensor, or a tuple of several, of the dtypes that the graph gives."""
        given = [_laid_out(x.detach().to(dtype)) for x, dtype in zip(inputs, self._dtypes, strict=True)]
        made = self._function()(*given)
        if isinstance(made, torch.Tensor):
            return made.to(self._results[0])
        return tuple(x.to(dtype) for x, dtype in zip(made, self._results, strict=True))

    def _function(self) -> Any:
        threads = torch.get_num_threads()
        if threads not in self._compiled:
            self._compiled[threads] = _compiled(self._graph, self._examples())
        return self._compiled[threads]

    def _examples(self) -> list[torch.Tensor]:
        shapes = [_static(_tensor(n)) for n in self._graph.find_nodes(op="placeholder")]
        return [_laid_out(torch.zeros(s, dtype=dtype)) for s, dtype in zip(shapes, self._dtypes, strict=True)]


def _takes(node: fx.Node, convolutions: Mapping[fx.Node, Convolution]) -> bool:
    """Whether a node can be in a stretch: of sizes that are numbers, and as exact there as in torch."""
    if node.target is operator.getitem:
        (pool,) = node.all_input_nodes
        return op_of(pool) == _POOL and _takes(pool, convolutions)
    if node in convolutions:
        found = convolutions[node]
        return not found.transposed and found.weight.dim() == IMAGE and _is_taken(node) and _is_taken(node.args[0])
    if op_of(node) == _POOL:
        return all(user.args[1] == 0 for user in node.users) and _is_taken(node.args[0])
    if op_of(node) not in STRETCHED:
        return False
    given = [a for a in node.args if isinstance(a, fx.Node)]
    numbers = node.meta["node"].args[len(given) :]
    mine = _tensor(node)
    alike = all(_is_taken(a) and (_tensor(a).shape, _tensor(a).dtype) == (mine.shape, mine.dtype) for a in given)
    return alike and all(isinstance(n, int | float) for n in numbers)


def _with_convolutions(nodes: Collection[fx.Node], convolutions: Mapping[fx.Node, Convolution]) -> set[fx.Node]:
    """Those of ``nodes`` between which and a convolution among them there are only others of them."""
    left = [n for n in nodes if n in convolutions]
    found = set(left)
    while left:
        node = left.pop()
        near = {n for n in (*node.all_input_nodes, *node.users) if n in nodes} - found
        found |= near
        left += near
    return found


def _is_taken(node: object) -> bool:
    found = type_of(node)
    return found is not None and computed_in(found.dtype) is not None and found.is_static and 0 not in found.shape


def _tensor(node: object) -> TensorType:
    found = type_of(node)
    assert found is not None
    return found


def _static(type_: TensorType) -> tuple[int, ...]:
    return tuple(d for d in type_.shape if isinstance(d, int))


def _laid_out(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last if x.dim() == IMAGE else torch.contiguous_format)


def _join(module: fx.GraphModule, nodes: Collection[fx.Node]) -> None:
    """Before: ``nodes`` with convolutions among them. After: each convolution is in a stretch, which is a call.

    What else is in ``nodes`` is in a stretch as well, or where it lies beside none, torch runs it.
    """
    partitions = CapabilityBasedPartitioner(module, _Among(nodes), allows_single_node_partition=True)
    found = [p.nodes for p in partitions.propose_partitions() if any(_CONVOLUTION in n.meta for n in p.nodes)]
    fuse_by_partitions(module, found, prefix=_PREFIX)
    for name, part in list(module.named_children()):
        if name.startswith(_PREFIX):
            assert isinstance(part, fx.GraphModule)
            setattr(module, name, Stretch(part.graph))
    module.recompile()


class _Among(OperatorSupportBase):
    def __init__(self, nodes: Collection[fx.Node]) -> None:
        self._nodes = nodes

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        return node in self._nodes


@contextmanager
def _enabled() -> Iterator[None]:
    """TorchScript has oneDNN Graph compile, in the whole process."""
    with _switch, _keeping_none():
        before = torch._C._jit_llga_enabled()
        torch._C._jit_set_llga_enabled(True)
        try:
            yield
        finally:
            torch._C._jit_set_llga_enabled(before)


@contextmanager
def _keeping_none() -> Iterator[None]:
    """oneDNN is told to keep nothing that it compiled, unless it was told otherwise. It asks once, the first time."""
    if _KEPT_BY_ONEDNN in os.environ:
        yield
        return
    os.environ[_KEPT_BY_ONEDNN] = "0"
    try:
        yield
    finally:
        del os.environ[_KEPT_BY_ONEDNN]


def _compiled(graph: fx.Graph, examples: list[torch.Tensor]) -> Any:
    function = _script(graph)
    with torch.no_grad(), _enabled():
        for _ in range(_CALLS_UNTIL_COMPILED):
            function(*examples)
    return function


def _script(graph: fx.Graph) -> Any:
    script: Any = torch._C.Graph()
    values: dict[fx.Node, Any] = {}

    def call(name: str, *args: Any) -> Any:
        given = [a if isinstance(a, torch._C.Value) else script.insertConstant(a) for a in args]
        return script.insertNode(script.create(name, given, 1)).output()

    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = script.addInput()
        elif node.op == "output":
            results = node.args[0] if isinstance(node.args[0], tuple) else node.args
            script.registerOutput(_joined([values[r] for r in results], call))
        elif node.target is operator.getitem:
            values[node] = values[node.args[0]]
        else:
            given = [values[a] for a in node.args if isinstance(a, fx.Node)]
            values[node] = _emit(node, call, given)
    return torch._C._create_function_from_graph("stretch", script)


def _joined(results: list[Any], call: Callable[..., Any]) -> Any:
    """The one value that a function gives."""
    if len(results) == 1:
        return results[0]
    made = call("prim::TupleConstruct", *results)
    made.setType(torch._C.TupleType([torch._C.TensorType.get()] * len(results)))
    return made


def _emit(node: fx.Node, call: Callable[..., Any], given: list[Any]) -> Any:
    found: Convolution | None = node.meta.get(_CONVOLUTION)
    if found is None:
        return STRETCHED[op_of(node) or ""](call, *given, *node.meta["node"].args[len(given) :])
    bias = None if found.bias is None else found.bias.contiguous()
    geometry = (list(found.stride), list(found.padding), list(found.dilation), found.groups)
    return call("aten::conv2d", *given, found.weight.contiguous(), bias, *geometry)


_Call = Callable[..., Any]


def _named(name: str) -> Callable[..., Any]:
    return lambda call, *args: call(name, *args)


def _silu(call: _Call, x: Any) -> Any:
    return call("aten::mul", x, call("aten::sigmoid", x))


def _pooled(call: _Call, x: Any, size: Any, stride: Any, *others: Any) -> Any:
    padding, dilation, ceil = others
    return call("aten::max_pool2d", x, list(size), list(stride or size), list(padding), list(dilation), ceil)


STRETCHED: Mapping[str, Callable[..., Any]] = {
    **{f"aten.{n}.default": _named(f"aten::{n}") for n in ("relu", "sigmoid", "tanh", "hardswish", "hardtanh")},
    "aten.leaky_relu.default": _named("aten::leaky_relu"),
    "aten.silu.default": _silu,
    "aten.add.Tensor": _named("aten::add"),
    _POOL: _pooled,
}
"""How TorchScript calls what oneDNN Graph takes: operands, then numbers."""
