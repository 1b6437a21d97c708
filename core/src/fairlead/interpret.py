"""What each op of the IR means, as torch code: a graph becomes an FX module that runs it op by op.

This is the reference every backend is compared with, the fallback of last resort, and the way back into compilers
that take FX.
"""

from __future__ import annotations

import ast
import functools
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec
import torch

from fairlead._control_flow import call_of
from fairlead._torch_types import TORCH_DTYPES
from fairlead.errors import IRFormatError
from fairlead.ir import (
    Argument,
    Complex,
    DimExpr,
    DType,
    Graph,
    Node,
    Symbol,
    TensorType,
    Token,
    Value,
    dims,
    row_major,
    symbols_in,
)
from fairlead.passes import layout_sensitive

R = TypeVar("R")

__all__ = ["in_clean_thread", "restride", "run", "to_fx", "torch_dtype"]


def to_fx(graph: Graph) -> torch.fx.GraphModule:
    """The graph as a module that takes one argument for each input and returns a tuple with one item for each output.

    Inputs are tensors of the declared type, or ints. An FX node that runs a node of the graph has it in
    ``meta["node"]``, and one that gives a value of the graph has that in ``meta["value"]``. Raises `IRFormatError` for
    an op that this torch does not have, or that has other parameters.
    """
    return _Writer(graph).write()


def run(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Run a graph once on tensors (and ints for scalar inputs), without gradients.

    >>> from fairlead.ir import DType, Graph, Input, Kind, Node, Output, TensorType, Value
    >>> x, y = Value(0, TensorType(DType.f32, (2,))), Value(1, TensorType(DType.f32, (2,)))
    >>> neg = Node("aten.neg.default", (x,), (y,))
    >>> run(Graph("g", Kind.inference, (Input(x),), (neg,), (Output(y),)), [torch.tensor([1.0, -2.0])])
    (tensor([-1.,  2.]),)
    """
    with torch.no_grad():
        return tuple(to_fx(graph)(*inputs))


def torch_dtype(dtype: DType) -> torch.dtype:
    """The torch dtype of a dtype of the IR.

    >>> torch_dtype(DType.bf16)
    torch.bfloat16
    """
    return TORCH_DTYPES[dtype]


def restride(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The tensor with these strides.

    Itself where only dimensions of size one differ, otherwise a copy in that layout.
    """
    wanted = tuple(strides)
    if all(n == 1 or a == b for n, a, b in zip(tensor.shape, tensor.stride(), wanted, strict=True)):
        return tensor.as_strided(tensor.shape, wanted) if tensor.stride() != wanted else tensor
    if tensor.numel() == 0:
        return torch.empty_strided(tensor.shape, wanted, dtype=tensor.dtype, device=tensor.device)
    broadcast = [n > 1 and s == 0 for n, s in zip(tensor.shape, wanted, strict=True)]
    source = tensor[tuple(slice(0, 1) if b else slice(None) for b in broadcast)]
    if _overlaps(source.shape, wanted):
        return _over_each_other(source, wanted).as_strided(tensor.shape, wanted)
    out = torch.empty_strided(source.shape, wanted, dtype=tensor.dtype, device=tensor.device)
    return out.copy_(source).as_strided(tensor.shape, wanted)


def _overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements may have one address, as in the windows that ``unfold`` shows."""
    extent = 1
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride < extent:
            return True
        extent += stride * (size - 1)
    return False


def _over_each_other(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The tensor in a layout in which elements share addresses; those that do are equal."""
    address = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for size, stride in zip(tensor.shape, strides, strict=True):
        address = address.unsqueeze(-1) + torch.arange(size, device=tensor.device) * stride
    memory = torch.empty(int(address.max()) + 1, dtype=tensor.dtype, device=tensor.device)
    memory[address.flatten()] = tensor.flatten()
    return memory


def in_clean_thread(function: Callable[[], R]) -> R:
    """What ``function`` returns or raises, run in a thread of its own, without gradients.

    Compilers are called while a program runs, under whatever the caller has on: autocast, inference mode, a default
    device, dispatch keys that autograd excludes. Torch keeps all of that per thread, so a new thread has none of it.

    >>> in_clean_thread(torch.is_grad_enabled)
    False
    """
    outcome: Future[R] = Future()

    def work() -> None:
        try:
            with torch.no_grad():
                outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="fairlead-compile", daemon=True)
    thread.start()
    return outcome.result()


def _copied(carry: Any) -> Any:
    return carry.clone() if isinstance(carry, torch.Tensor) else carry


class _Writer:
    def __init__(self, graph: Graph, outer: Sequence[str] = ()) -> None:
        self.graph = graph
        self.outer = outer
        self.modules: dict[str, torch.fx.GraphModule] = {}
        self.fx = torch.fx.Graph()
        self.env: dict[int, torch.fx.Node] = {}
        self.dims: dict[dims.Dim, Any] = {}
        self.symbols: dict[str, Symbol] = {s.name: s for s in graph.symbols}

    def write(self) -> torch.fx.GraphModule:
        for i, item in enumerate(self.graph.inputs):
            self.env[item.value.id] = self.fx.placeholder(f"in_{i}")
        for node in self.graph.nodes:
            self._node(node)
        self.fx.output(tuple(self._argument(o.value) for o in self.graph.outputs))
        return self._module()

    def write_region(self, *, is_condition: bool) -> torch.fx.GraphModule:
        """The body of control flow, which takes the symbols of the graph around it as further arguments.

        Its results lie in memory as declared, because those of branches have to agree.
        The condition of a loop is one truth value, not a tuple.
        """
        for i, item in enumerate(self.graph.inputs):
            self.env[item.value.id] = self.fx.placeholder(f"in_{i}")
        self.dims = {name: self.fx.placeholder(f"symbol_{name}") for name in self.outer}
        for node in self.graph.nodes:
            self._node(node)
        outputs = [self._laid_out(self._argument(o.value), o.value) for o in self.graph.outputs]
        if is_condition:
            self.fx.output(self._truth(outputs[0], self.graph.outputs[0].value))
        else:
            self.fx.output(tuple(outputs))
        return self._module()

    def _module(self) -> torch.fx.GraphModule:
        return torch.fx.GraphModule(self.modules, self.fx, class_name=f"fairlead_{self.graph.name}")

    def _node(self, node: Node) -> None:
        if node.regions:
            self._results(node, self._with_regions(node))
            return
        target, names = _target(node.op)
        if len(node.args) != len(names):
            raise IRFormatError(
                f"{node.op} takes {len(names)} arguments, not {len(node.args)}",
                where=f"torch {torch.__version__}; {node.location or 'unknown line'}",
                next="write one argument for each parameter of the op's signature, defaults included",
            )
        args = [self._argument(a) for a in node.args]
        if layout_sensitive(node.op):
            args = [self._laid_out(a, given) for a, given in zip(args, node.args, strict=True)]
        if _number_for_tensor(node):  # torch picks the overload that takes the number
            target = getattr(torch.ops.aten, node.op.split(".")[1])
        written = _written(node.op)
        copies = [self._cloned(args, index) for index in written]
        positional = [a for a, name in zip(args, names, strict=True) if name is None]
        keywords = {name: a for a, name in zip(args, names, strict=True) if name is not None}
        result = self.fx.call_function(target, tuple(positional), keywords)
        if written:
            self._results_of_writing(node, result, [c for copy in copies for c in copy])
        else:
            self._results(node, result)

    def _cloned(self, args: list[Any], index: int) -> list[torch.fx.Node]:
        """The tensors of an argument that an op writes to, as copies that stand in for them."""
        arg = args[index]
        copies = [
            self.fx.call_function(torch.clone, (a,)) for a in (arg if isinstance(arg, list) else [arg]) if a is not None
        ]
        args[index] = (copies if isinstance(arg, list) else copies[0]) if copies else arg
        return copies

    def _results_of_writing(self, node: Node, result: torch.fx.Node, copies: Sequence[torch.fx.Node]) -> None:
        """Bind the op's own results, and then what it has written."""
        own = len(node.results) - len(copies)
        returned = msgspec.structs.replace(node, results=node.results[:own])
        self._results(returned, result)
        for value, copy in zip(node.results[own:], copies, strict=True):
            if value is not None:
                self._bind(value, copy)

    def _with_regions(self, node: Node) -> torch.fx.Node:
        free = sorted(symbols_in(*node.regions))
        regions = []
        for index, region in enumerate(node.regions):
            name = f"region_{len(self.modules)}"
            is_condition = node.op == "hop.while_loop" and index == 0
            self.modules[name] = _Writer(region, free).write_region(is_condition=is_condition)
            regions.append(self.fx.get_attr(name))
        args = [self._argument(a) for a in node.args]
        if node.op == "hop.cond":
            args[0] = self._truth(args[0], node.args[0])
        if node.op == "hop.while_loop":  # torch's compilers refuse a carry that shares memory with another operand
            args[0] = [self.fx.call_function(_copied, (a,)) for a in args[0]]
        if isinstance(args[-1], list):
            args[-1] += map(self._dim, free)
        call = call_of(node.op, args, regions)
        if call is None:
            raise IRFormatError(
                f"the op {node.op} has no meaning with regions",
                where=f"torch {torch.__version__}; {node.location or 'unknown line'}",
                next="use an op of control flow that the opset has",
            )
        return self.fx.call_function(*call)

    def _truth(self, outcome: Any, given: Argument) -> Any:
        """A truth value: of an integer, whether it is not zero."""
        return outcome if isinstance(given, Value) else self.fx.call_function(operator.ne, (outcome, 0))

    def _results(self, node: Node, result: torch.fx.Node) -> None:
        result.meta["node"] = node
        if len(node.results) == 1 and not _returns_list(node.op):
            if node.results[0] is not None:
                self._bind(node.results[0], result)
            return
        for index, value in enumerate(node.results):
            if value is not None:
                self._bind(value, self.fx.call_function(operator.getitem, (result, index)))

    def _bind(self, value: Value, result: torch.fx.Node) -> None:
        result.meta["value"] = value
        self.env[value.id] = result

    def _laid_out(self, arg: Any, given: object) -> Any:
        """A value that is read as it lies in memory, with the strides that its type has."""
        if isinstance(given, tuple):
            return [self._laid_out(a, g) for a, g in zip(arg, given, strict=True)]
        if not isinstance(given, Value) or not isinstance(given.type, TensorType):
            return arg
        strides = given.type.strides if given.type.strides is not None else row_major(given.type.shape)
        return self.fx.call_function(restride, (arg, [self._dim(s) for s in strides]))

    def _argument(self, arg: Argument) -> Any:
        match arg:
            case Value():
                return self.env[arg.id]
            case DimExpr(expr=expr):
                return self._dim(expr)
            case Token():
                return _token(arg)
            case Complex(re=re, im=im):
                return complex(re, im)
            case tuple():
                return [self._argument(a) for a in arg]
        return arg

    def _dim(self, dim: dims.Dim) -> Any:
        if isinstance(dim, int):
            return dim
        if dim not in self.dims:
            self.dims[dim] = self._expression(ast.parse(dim, mode="eval").body)
        return self.dims[dim]

    def _expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name):
                return self._symbol(name)
            case ast.UnaryOp(operand=operand):
                return self.fx.call_function(operator.neg, (self._expression(operand),))
            case ast.BinOp(left=left, op=op, right=right):
                function = _OPERATORS[type(op)]
                return self.fx.call_function(function, (self._expression(left), self._expression(right)))
            case ast.Call(func=ast.Name(id=name), args=args):
                pick = torch.sym_min if name == "min" else torch.sym_max
                parts = [self._expression(a) for a in args]
                return functools.reduce(lambda a, b: self.fx.call_function(pick, (a, b)), parts)
        raise AssertionError(ast.dump(node))

    def _symbol(self, name: str) -> Any:
        if name not in self.dims:
            index, axis = self.symbols[name].source
            source = self.env[self.graph.inputs[index].value.id]
            self.dims[name] = (
                source if axis is None else self.fx.call_function(torch.ops.aten.sym_size.int, (source, axis))
            )
        return self.dims[name]


_OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _token(token: Token) -> Any:
    match token.kind:
        case "dtype":
            return TORCH_DTYPES[DType(token.name)]
        case "device":
            return torch.device(token.name)
    return getattr(torch, token.name)


@functools.cache
def _target(op: str) -> tuple[Callable[..., Any], tuple[str | None, ...]]:
    """What to call for an op, and for each argument its keyword, or None where it is positional."""
    if op in _OWN:
        function, count = _OWN[op]
        return function, (None,) * count
    namespace, _, rest = op.partition(".")
    name, _, overload = rest.partition(".")
    try:
        found = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except AttributeError as error:
        raise IRFormatError(
            f"the op {op} does not exist here",
            where=f"torch {torch.__version__}",
            next="use a torch release that has it",
        ) from error
    target = torch.ops.aten.reshape.default if op == "aten.view.default" else found
    return target, tuple(a.name if a.kwarg_only else None for a in found._schema.arguments)


@functools.cache
def _written(op: str) -> tuple[int, ...]:
    """The parameters that an op writes to, by position; most write to none."""
    if op in _OWN:
        return ()
    parameters = _target(op)[0]._schema.arguments  # type: ignore[attr-defined]
    return tuple(i for i, p in enumerate(parameters) if p.alias_info is not None and p.alias_info.is_write)


@functools.cache
def _returns_list(op: str) -> bool:
    if op.startswith("hop."):
        return True
    if op in _OWN:
        return op != "nn.bernoulli.default"
    function, _ = _target(op)
    returns = function._schema.returns  # type: ignore[attr-defined]
    return len(returns) != 1 or str(returns[0].type) != "Tensor"


def _number_for_tensor(node: Node) -> bool:
    """Whether a Python number stands where the op's signature has a tensor."""
    if not node.op.startswith("aten.") or node.op in _OWN:
        return False
    function, _ = _target(node.op)
    parameters = function._schema.arguments  # type: ignore[attr-defined]
    return any(
        isinstance(a, int | float | DimExpr | Complex) and str(p.type) in ("Tensor", "Optional[Tensor]")
        for a, p in zip(node.args, parameters, strict=True)
    )


def _bernoulli(size: Sequence[int], p: float, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(size, dtype=dtype, device=device).bernoulli_(p)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    query, key, value = map(_last_contiguous, (query, key, value))
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(  # type: ignore[no-any-return]
        query, key, value, dropout, causal, attn_mask=mask, scale=scale
    )


def _attention_backward(
    grad: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    grad, query, key, value, out = map(_last_contiguous, (grad, query, key, value, out))
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default(  # type: ignore[no-any-return]
        grad, query, key, value, out, logsumexp, dropout, causal, attn_mask=mask, scale=scale
    )


def _rms_norm(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None, eps: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """As ``aten._fused_rms_norm``, which torch has since 2.9 and computes in the same steps."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    rstd = torch.rsqrt(wide.square().mean(tuple(range(-len(shape), 0)), keepdim=True) + eps)
    out = wide * rstd
    return (out if weight is None else out * weight).to(x.dtype), rstd


def _last_contiguous(x: torch.Tensor) -> torch.Tensor:
    """The flash kernels read rows: the last dimension has to be dense."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


_OWN: Mapping[str, tuple[Callable[..., Any], int]] = {
    "aten._fused_rms_norm.default": (_rms_norm, 4),
    "nn.bernoulli.default": (_bernoulli, 4),
    "nn.scaled_dot_product_attention": (_attention, 7),
    "nn.scaled_dot_product_attention_backward": (_attention_backward, 10),
}
