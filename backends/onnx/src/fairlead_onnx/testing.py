"""Differential tests of single ops: nodes, their operands, and what eager torch makes of them.

A backend that runs this lowering checks its runtime with them::

    @pytest.mark.parametrize("case", op_cases(), ids=str)
    def test_an_op_agrees_with_eager(case):
        assert check([case], backend) == {}

Needs torch; nothing else in this package does.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fairlead.backend import Backend
from fairlead.ir import Argument, Complex, DType, Graph, Input, Kind, Node, Output, TensorType, Token, Value
from fairlead_onnx._op_cases import CASES

__all__ = ["OpCase", "check", "graph_of", "op_cases"]

_DTYPES = {
    torch.bool: DType.bool,
    torch.uint8: DType.u8,
    torch.int8: DType.i8,
    torch.int16: DType.i16,
    torch.int32: DType.i32,
    torch.int64: DType.i64,
    torch.float16: DType.f16,
    torch.bfloat16: DType.bf16,
    torch.float32: DType.f32,
    torch.float64: DType.f64,
    torch.complex64: DType.c64,
}
_TOLERANCES = {
    torch.float16: (2e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
    torch.float32: (3e-5, 3e-6),
    torch.float64: (1e-9, 1e-11),
    torch.complex64: (3e-5, 3e-6),
}


@dataclass(frozen=True)
class OpCase:
    """One op on one set of arguments. Its text is its id."""

    op: str
    dtype: DType
    index: int

    def __str__(self) -> str:
        return f"{self.op}/{self.dtype}/{self.index}"

    @property
    def has_nan(self) -> bool:
        """Whether an operand has a NaN."""
        tensors = [a for a in self.arguments() if isinstance(a, torch.Tensor)]
        return any(bool(t.isnan().any()) for t in tensors)

    def arguments(self) -> tuple[Any, ...]:
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(zlib.crc32(str(self).encode()))
            return CASES[self.index][2](_TORCH[self.dtype])


def check(cases: Sequence[OpCase], backend: Backend[Any], device: str = "cpu") -> dict[str, str]:
    """Run cases, compiled as one graph, and compare each with eager; returns the reasons of those that are declined.

    Eager computes on the CPU, whatever the device that the backend is given the operands on.

    Raises AssertionError, which names the case, where a result differs in dtype, shape or values.
    """
    declined: dict[str, str] = {}
    accepted: list[tuple[OpCase, Node, list[torch.Tensor | None]]] = []
    inputs: list[torch.Tensor] = []
    for case in cases:
        args = case.arguments()
        own: list[torch.Tensor] = []
        expected = [_moved(r, device) for r in _eager(case.op, args)]
        node = _node(case, _moved(_complete(case.op, args), device), expected, own, len(inputs))
        support = backend.supports(node)
        if not support.accepted:
            declined[str(case)] = support.reason
            continue
        accepted.append((case, node, expected))
        inputs += own
    if accepted:
        _compare_all(accepted, inputs, backend)
    return declined


def _moved(arg: Any, device: str) -> Any:
    """An argument with its tensors on a device; sequences are tuples."""
    if isinstance(arg, (tuple, list)):
        return tuple(_moved(a, device) for a in arg)
    return arg.to(device) if isinstance(arg, torch.Tensor) else arg


def graph_of(case: OpCase) -> Graph:
    """The case as a graph of one node, for what compiles and does not run."""
    args, own = case.arguments(), list[torch.Tensor]()
    node = _node(case, _complete(case.op, args), _eager(case.op, args), own, 0)
    return _graph(own, [node])


def _compare_all(
    accepted: list[tuple[OpCase, Node, list[torch.Tensor | None]]], inputs: list[torch.Tensor], backend: Backend[Any]
) -> None:
    graph = _graph(inputs, [node for _, node, _ in accepted])
    found = iter(backend.compile(graph, backend.options_type(), {})(inputs))
    for case, _, expected in accepted:
        for want in expected:
            if want is not None:
                _compare(str(case), next(found), want)


def _graph(inputs: Sequence[torch.Tensor], nodes: Sequence[Node]) -> Graph:
    results = (r for node in nodes for r in node.results if r is not None)
    return Graph(
        "cases",
        Kind.inference,
        tuple(Input(Value(i, _type(t)), name=f"x{i}") for i, t in enumerate(inputs)),
        tuple(nodes),
        tuple(map(Output, results)),
    )


_RESULTS = 1_000_000
"""The ids of results start here, beyond those of all inputs."""


def _node(
    case: OpCase, args: tuple[Any, ...], expected: list[torch.Tensor | None], inputs: list[torch.Tensor], first: int
) -> Node:
    """The node of a case. Its operands are appended to ``inputs`` and numbered from ``first`` on."""
    node_args = tuple(_argument(a, inputs, first) for a in args)
    base = _RESULTS + 100_000 * case.index + 100 * list(DType).index(case.dtype)
    results = tuple(None if r is None else Value(base + i, _type(r)) for i, r in enumerate(expected))
    return Node(case.op, node_args, results)


_TORCH = {ours: theirs for theirs, ours in _DTYPES.items()}


def op_cases() -> tuple[OpCase, ...]:
    """Every case of the table."""
    return tuple(OpCase(op, DType(d), index) for index, (op, dtypes, _) in enumerate(CASES) for d in dtypes.split())


def _compare(name: str, found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.dtype is expected.dtype, f"{name}: {found.dtype} instead of {expected.dtype}"
    rtol, atol = _TOLERANCES.get(expected.dtype, (0.0, 0.0))
    if expected.is_complex() and expected.isinf().any():  # one part may be infinite, and the other near
        found, expected = torch.view_as_real(found), torch.view_as_real(expected.resolve_conj())
    torch.testing.assert_close(
        found, expected, rtol=rtol, atol=atol, equal_nan=True, check_stride=False, msg=lambda text: f"{name}: {text}"
    )


def _argument(arg: Any, inputs: list[torch.Tensor], first: int) -> Argument:
    match arg:
        case torch.Tensor():
            inputs.append(arg)
            return Value(first + len(inputs) - 1, _type(arg))
        case torch.dtype():
            return Token("dtype", _DTYPES[arg])
        case tuple() | list():
            return tuple(_argument(a, inputs, first) for a in arg)
        case complex():
            return Complex(arg.real, arg.imag)
    assert arg is None or isinstance(arg, (bool, int, float, str))
    return arg


def _type(tensor: torch.Tensor) -> TensorType:
    return TensorType(_DTYPES[tensor.dtype], tuple(tensor.shape), device=str(tensor.device))


def _complete(op: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with eager's defaults filled in; the composites of attention carry the forward's results."""
    if op == "nn.scaled_dot_product_attention_backward":
        return _with_forward(args)
    if op.startswith("nn."):
        return args
    schema = _packet(op)._schema.arguments
    return (*args, *(a.default_value if a.has_default_value() else None for a in schema[len(args) :]))


def _with_forward(args: tuple[Any, ...]) -> tuple[Any, ...]:
    grad, query, key, value, *rest = args
    out, lse = _attention(query, key, value, *rest)
    return grad, query, key, value, out, lse, *rest


def _packet(op: str) -> Any:
    found: Any = torch.ops
    for part in op.split("."):
        found = getattr(found, part)
    return found


def _eager(op: str, args: tuple[Any, ...]) -> list[torch.Tensor | None]:
    if op == "nn.scaled_dot_product_attention":
        return list(_attention(*args))
    if op == "nn.scaled_dot_product_attention_backward":
        return list(_attention_gradients(*args))
    if op == "nn.lstm":
        return list(_lstm(*args))
    arguments = _packet(op)._schema.arguments
    given = {a.name: v for a, v in zip(arguments, args, strict=False)}
    positional = [v for a, v in zip(arguments, args, strict=False) if not a.kwarg_only]
    named = {a.name: given[a.name] for a in arguments if a.kwarg_only and a.name in given}
    result = _packet(op.rpartition(".")[0])(*positional, **named)  # the packet also takes numbers in tensor slots
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _lstm(
    data: Any, hx: Any, cx: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, reverse: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    weights = [w for w in (weight_ih, weight_hh, bias_ih, bias_hh) if w is not None]
    data = data.flip(0) if reverse else data
    out, hy, cy = torch.lstm(data, (hx, cx), weights, bias_ih is not None, 1, 0.0, False, False, False)
    return out.flip(0) if reverse else out, hy, cy


def _attention(
    query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    out = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, dropout, causal, scale=scale, enable_gqa=True
    )
    spread = key.float().repeat_interleave(query.shape[1] // key.shape[1], 1)
    scores = query.float() @ spread.transpose(-1, -2) * scale
    if causal:
        scores = scores + torch.full(scores.shape[-2:], float("-inf")).triu(1)
    if mask is not None:
        scores = scores + mask
    return out, scores.logsumexp(-1).nan_to_num(neginf=0.0)


def _attention_gradients(
    grad: Any, query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, scale: float
) -> tuple[Any, ...]:
    leaves = [t.detach().requires_grad_() for t in (query, key, value)]
    query, key, value = leaves
    out = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, dropout, causal, scale=scale, enable_gqa=True
    )
    return torch.autograd.grad(out, leaves, grad)
