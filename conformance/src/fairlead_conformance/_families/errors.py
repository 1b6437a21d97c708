"""Bad calls: nodes that no program makes, and damaged files. A backend says no, or raises; it never gives a result.

Core checks dtypes, devices and results, so that nothing is asked of a backend there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import torch

from fairlead.backend import Support
from fairlead.errors import IRError
from fairlead.interpret import in_clean_thread
from fairlead.ir import (
    IR_VERSION,
    Argument,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    TensorType,
    Value,
    from_bytes,
    module,
    opset,
    to_bytes,
)
from fairlead_conformance._case import Case, Level
from fairlead_conformance._device import placed
from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]

_X, _Y = (Value(i, TensorType(DType.f32, (2, 3))) for i in range(2))

_NODES: dict[str, tuple[str, tuple[Argument, ...]]] = {
    "unknown-op": ("nowhere.frobnicate.default", (_X,)),
    "unknown-overload": ("aten.relu.nowhere", (_X,)),
    "unknown-op-that-begins-alike": ("aten.relu_of_something.default", (_X,)),
    "too-few-arguments": ("aten.add.Tensor", (_X,)),
    "too-many-arguments": ("aten.relu.default", (_X, 1, 2)),
    "no-arguments": ("aten.mm.default", ()),
    "text-for-a-tensor": ("aten.relu.default", ("x",)),
    "nothing-for-a-tensor": ("aten.relu.default", (None,)),
    "an-unknown-mode": ("aten.div.Tensor_mode", (_X, 2.0, "sideways")),
    "a-dimension-too-far": ("aten._softmax.default", (_X, 7, False)),
}


def _truncated(good: bytes) -> bytes:
    return good[: len(good) // 2]


def _of_a_newer_version(good: bytes) -> bytes:
    return good.replace(
        msgspec.msgpack.encode(IR_VERSION), msgspec.msgpack.encode((IR_VERSION[0], IR_VERSION[1] + 1)), 1
    )


def _with_a_newer_op(good: bytes) -> bytes:
    name = msgspec.msgpack.encode("aten.relu.default")
    return good.replace(name + b"\x01", name + b"\x63", 1)


_FILES: dict[str, Callable[[bytes], bytes]] = {
    "truncated-file": _truncated,
    "empty-file": lambda good: b"",
    "file-of-something-else": lambda good: b"PK" + good,
    "file-with-more-at-its-end": lambda good: good + b"\x00",
    "file-of-a-newer-version": _of_a_newer_version,
    "file-with-a-newer-op": _with_a_newer_op,
}


def cases() -> Sequence[Case]:
    names = sorted([*_NODES, *_FILES, "any-op-without-arguments"])
    return [
        Case(id=f"errors/{name}/f32/s000", level=Level.L1 if name.startswith("unknown") else Level.L2) for name in names
    ]


def run(case: Case, subject: Subject, seen: Observation) -> None:
    if case.subject in _FILES:
        _refuses(_FILES[case.subject])
    elif case.subject in _NODES:
        op, args = _NODES[case.subject]
        _refuses_node(Node(op, args, (_Y,)), subject)
    else:
        for op in opset.specs():
            _asked(Node(op, (), (_Y,)), subject)
    seen.compared += 1


def _refuses(damage: Callable[[bytes], bytes]) -> None:
    good = to_bytes(module(Graph("g", Kind.inference, (Input(_X),), (_relu(),), (Output(_Y),)), producer={}))
    bad = damage(good)
    assert bad != good
    try:
        from_bytes(bad)
    except IRError as error:
        if len(str(error).splitlines()) >= 3:
            return
        raise Failed(Status.FAIL_ERRORS, "clear", f"not three lines: {error}") from error
    raise Failed(Status.FAIL_ERRORS, "refused", "a damaged file was read")


def _relu() -> Node:
    return Node("aten.relu.default", (_X,), (_Y,))


def _asked(node: Node, subject: Subject) -> Support:
    """What the backend says of a node, which is the same each time, and has a reason where it is no."""
    try:
        answers = [subject.backend.supports(node) for _ in range(2)]
    except Exception as error:
        what = f"supports({node.op}) raised {type(error).__name__}: {error}"
        raise Failed(Status.FAIL_COMPILE, "supports-never-raises", what) from error
    if answers[0] != answers[1]:
        detail = f"supports({node.op}) gave {answers[0]}, then {answers[1]}"
        raise Failed(Status.FAIL_NONDETERMINISM, "supports-is-pure", detail)
    if not answers[0].accepted and not answers[0].reason:
        raise Failed(Status.FAIL_ERRORS, "reasons", f"supports({node.op}) declines without a reason")
    return answers[0]


def _refuses_node(node: Node, subject: Subject) -> None:
    if not _asked(node, subject).accepted:
        return
    graph = placed(Graph("bad", Kind.inference, (Input(_X),), (node,), (Output(_Y),)), subject.place)
    try:
        executable = in_clean_thread(lambda: subject.backend.compile(graph, subject.options, {}))
        executable([torch.ones(2, 3, device=subject.place)])
    except Exception as error:
        if str(error):
            return
        raise Failed(Status.FAIL_ERRORS, "clear", f"{type(error).__name__} without a word") from error
    raise Failed(Status.FAIL_ERRORS, "refused", f"{node.op}({', '.join(map(str, node.args))}) gave a result")
