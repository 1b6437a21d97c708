"""Rules of control flow: If, Loop and Scan, with a body for each region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from fairlead.ir import Argument, Dim, DType, Graph, ScalarType, TensorType, Type, Value
from fairlead_onnx._call import Call, computed_type
from fairlead_onnx._nodes import write
from fairlead_onnx._rules import RULES, rule
from fairlead_onnx._writer import Body, Declined, Ref, Writer

__all__: list[str] = []

Sized = tuple[Ref, tuple[Dim, ...]]


@rule("hop.cond")
def cond(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: predicate, operands. Regions: where it holds, and where not."""
    w, operands = c.writer, _operands(c, 1)
    predicate = w.scalar(c.tensor(0, DType.bool))
    bodies = [_closed(w, region, operands, _dtypes(c)) for region in c.node.regions]
    return w.control("If", predicate, dtypes=_dtypes(c), bodies={"then_branch": bodies[0], "else_branch": bodies[1]})


@rule("hop.while_loop")
def while_loop(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: state, operands. Regions: whether to go on, and the next state."""
    w, (condition, step) = c.writer, c.node.regions
    state, operands = _given(c, 0, step), _operands(c, 1)
    goes_on = _run(w, condition, [*state, *operands])[0]
    inner = w.inside(_none)
    carried = [_fresh(inner, value.type) for value in _values(step)[: len(state)]]
    count, before = _number(inner, DType.i64), _number(inner, DType.bool)
    after = [
        inner.cast(ref, own.dtype)
        for ref, (own, _) in zip(_run(inner, step, [*(ref for ref, _ in carried), *operands]), carried, strict=True)
    ]
    still = inner.scalar(_run(inner, condition, [*after, *operands])[0])
    shapes = [shape for _, shape in carried]
    body = inner.body([count, before, *carried], [(still, ()), *zip(after, shapes, strict=True)])
    found = w.control(
        "Loop", None, w.scalar(goes_on), *state, dtypes=[ref.dtype for ref, _ in carried], bodies={"body": body}
    )
    return tuple(found)


@rule("hop.scan")
def scan(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: first state, tensors to go along, operands. Region: the next state, and a row of each result."""
    (step,) = c.node.regions
    return _scanned(c, _given(c, 0, step), cast("tuple[Value, ...]", c.args[1]), _operands(c, 2))


@rule("hop.map")
def map_(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: tensors to go along, operands. Region: a row of each result."""
    return _scanned(c, [], cast("tuple[Value, ...]", c.args[0]), _operands(c, 1))


def _scanned(c: Call, state: list[Ref], xs: Sequence[Value], operands: list[Ref]) -> tuple[Ref | None, ...]:
    w, (step,) = c.writer, c.node.regions
    if any(x.tensor.shape[0] == 0 for x in xs):
        raise Declined(f"{c.node.op} over no rows")
    inner = w.inside(_none)
    given = [_fresh(inner, value.type) for value in _values(step)[: len(state) + len(xs)]]
    found = _run(inner, step, [*(ref for ref, _ in given), *operands])
    dtypes = [*(ref.dtype for ref, _ in given[: len(state)]), *(_dtypes(c)[len(state) :])]
    rows = [inner.cast(ref, dtype) for ref, dtype in zip(found, dtypes, strict=True)]
    shapes = [_shape(cast(Value, output.value).type) for output in step.outputs]
    body = inner.body(given, list(zip(rows, shapes, strict=True)))
    rows_in = [c.operand(x) for x in xs]
    return w.control("Scan", *state, *rows_in, dtypes=dtypes, bodies={"body": body}, num_scan_inputs=len(xs))


def _closed(w: Writer, region: Graph, operands: list[Ref], dtypes: list[DType]) -> Body:
    """A region whose inputs are tensors from around it, so that it is given none."""
    inner = w.inside(_none)
    found = _run(inner, region, operands)
    shapes = [_shape(cast(Value, output.value).type) for output in region.outputs]
    outputs = [(inner.cast(ref, dtype), shape) for ref, dtype, shape in zip(found, dtypes, shapes, strict=True)]
    return inner.body([], outputs)


def _run(w: Writer, region: Graph, given: Sequence[Ref]) -> list[Ref]:
    """Write the nodes of a region for these inputs; its results."""
    if region.symbols:
        raise Declined("a region with sizes of its own")
    values = {value.id: ref for value, ref in zip(_values(region), given, strict=True)}
    for node in region.nodes:
        if node.op not in RULES:
            raise Declined(f"in a region: {node.op} has no ONNX lowering")
        write(node, w, values)
    for output in region.outputs:
        if not isinstance(output.value, Value):
            raise Declined("a region that gives no tensor")
    return [values[cast(Value, output.value).id] for output in region.outputs]


def _values(region: Graph) -> list[Value]:
    return [given.value for given in region.inputs]


def _given(c: Call, index: int, region: Graph) -> list[Ref]:
    """The first operands, in the types that the region has for them."""
    args = cast("tuple[Argument, ...]", c.args[index])
    return [c.operand(arg, _dtype(value.type)) for arg, value in zip(args, _values(region), strict=False)]


def _operands(c: Call, index: int) -> list[Ref]:
    return [c.operand(arg) for arg in cast("tuple[Argument, ...]", c.args[index])]


def _dtypes(c: Call) -> list[DType]:
    """The element types of what the last region gives."""
    types = [output.value.type if isinstance(output.value, Value) else None for output in c.node.regions[-1].outputs]
    if not all(isinstance(type_, TensorType) for type_ in types):
        raise Declined(f"{c.node.op} with a result that is no tensor")
    return [computed_type(type_) for type_ in types if isinstance(type_, TensorType)]


def _fresh(w: Writer, type_: Type) -> Sized:
    """A tensor that the body is given."""
    ref, shape = w.given(_dtype(type_)), _shape(type_)
    return ref, shape


def _number(w: Writer, dtype: DType) -> Sized:
    return w.given(dtype), ()


def _dtype(type_: Type) -> DType:
    return DType.i64 if isinstance(type_, ScalarType) else computed_type(type_)


def _shape(type_: Type) -> tuple[Dim, ...]:
    return () if isinstance(type_, ScalarType) else type_.shape


def _none(name: str) -> None:
    """No symbol is the body's own."""
