"""Whether the rules write a node: a look-up, and what each rule says that it declines."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from fairlead.backend import Level, Support
from fairlead.interpret import quicker_in_bfloat16
from fairlead.ir import DType, Graph, Node, ScalarType, TensorType, Value, opset
from fairlead.passes import trains_convolutions
from fairlead_openxla._devices import cuda_devices, unreachable
from fairlead_openxla._rules import rules

__all__ = ["declines", "supports"]

_CPU = frozenset({"cpu"})
_DECLINED = {
    "aten.as_strided.default": "as_strided reads memory, whose beginning the node does not say",
    "aten.as_strided_scatter.default": "as_strided_scatter writes memory, whose beginning the node does not say",
    "aten.convolution_backward.default": "torch has the gradient of a convolution: XLA's is slower on a CPU",
    "nn.lstm": "slower than eager here: XLA multiplies the few rows of each step of an LSTM one step at a time",
}
_DATA_DEPENDENT = frozenset(
    f"aten.{name}"
    for name in (
        "nonzero.default", "masked_select.default", "unique_consecutive.default", "unique_dim.default",
        "_unique2.default", "_local_scalar_dense.default", "bincount.default",
    )
)  # fmt: skip


def supports(node: Node) -> Support:
    """Whether the rules can write this node exactly, and jax reaches its device. A pure function of the node."""
    if (elsewhere := _out_of_reach(node)) is not None:
        return Support.no(elsewhere)
    entry = rules().get(node.op)
    if entry is None:
        return _without_rule(node.op)
    if (count := _parameters(node.op)) not in (None, len(node.args)):
        return Support.no(f"{node.op} with {len(node.args)} arguments, not {count}")
    if not entry.takes_complex and any(d.is_complex for d in _dtypes(node)):
        return Support.no(f"{node.op} of complex numbers", Level.PLANNED)
    reason = entry.unless(node) if entry.unless is not None else None
    return Support.yes() if reason is None else Support.no(reason)


def declines(graph: Graph) -> str | None:
    """Why a graph is run by others: what XLA is slow at, and what is not right between its programs."""
    if len(devices := cuda_devices(graph)) > 1:
        return f"tensors on {' and '.join(devices)}: a program of XLA is of one device"
    return trains_convolutions(graph) or quicker_in_bfloat16(graph)


def _out_of_reach(node: Node) -> str | None:
    """Why the node's tensors cannot be had by one program; a number on the CPU can."""
    results = [v.type for v in node.results if v is not None and isinstance(v.type, TensorType)]
    operands = [v.type for v in node.operands() if isinstance(v.type, TensorType)]
    devices = {t.device for t in (*results, *operands)}
    if devices <= _CPU:
        return None
    if (reason := next(filter(None, map(unreachable, sorted(devices))), None)) is not None:
        return reason
    if any(t.device == "cpu" for t in results):
        return "a copy to the CPU waits for the device"
    if any(t.device == "cpu" and t.rank for t in operands):
        return "a tensor on the CPU with one on CUDA"
    return None


def _without_rule(op: str) -> Support:
    if op in _DECLINED:
        return Support.no(_DECLINED[op])
    if op in _DATA_DEPENDENT:
        return Support.no("the size of the result depends on the values of the operand")
    return Support.no(f"{op} has no rule for XLA", Level.PLANNED)


@functools.cache
def _parameters(op: str) -> int | None:
    """How many arguments a node of the op takes; None for an op that is not in the opset."""
    spec = opset.spec(op)
    return None if spec is None else len(opset.signature(spec.signature).parameters)


def _dtypes(node: Node) -> Iterator[DType]:
    values: list[Value] = [*node.operands(), *(r for r in node.results if r is not None)]
    for value in values:
        match value.type:
            case TensorType(dtype=dtype) | ScalarType(dtype=dtype):
                yield dtype
