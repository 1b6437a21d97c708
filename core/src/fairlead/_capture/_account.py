"""What Dynamo tells of its own work: breaks, guards, recompilations and times. Checked on torch 2.8, 2.13 and 2.15.

Read are the reason that a graph ended for (``GraphModule.compile_subgraph_reason``), the metrics that Dynamo keeps of
every frame (``torch._dynamo.utils.get_compilation_metrics``) and the guards that it gives a ``guard_export_fn``. A
``guard_filter_fn`` would be public, but with one torch makes guards twice and then compares what they are about, which
is an error for arrays of NumPy that a break leaves.
"""

from __future__ import annotations

import contextlib
import linecache
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch._dynamo import output_graph, utils
from torch._dynamo.callback import callback_handler
from torch._dynamo.guards import strip_local_scope
from torch._guards import CompileContext

from fairlead import _hook_calls
from fairlead._stages import Stage, note
from fairlead.explanation import Break, Frame, Guard, Line, Recompilation

__all__ = ["Watch", "accounted", "recompilation", "time_frame"]

_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")
_FIELD = re.compile(r"^\s*(Explanation|Hint|Developer debug context): ", re.MULTILINE)
_LINK = re.compile(r"https?://\S+")

_METRICS = 10_000
"""So many frames' metrics are kept while somebody watches; Dynamo keeps 64."""

_OWN_WORDS = {
    "generic_jump": (
        "a branch on the value of a tensor",
        "Which way the program goes is known only once the tensor is computed, so the graph ends before it.",
        ("Use torch.where, or torch.cond for whole branches; or move the branch out of what is compiled.",),
    ),
}
"""Reasons that torch gives as a word of its own code."""


class _Graph(NamedTuple):
    """A graph as Dynamo handed it over: its ops, and Dynamo's reason why it ended, unless its function did."""

    ops: dict[str, int] = {}
    ended: Any = None


def _break(text: str, stack: Sequence[Line]) -> Break:
    """A break from torch's text about it, which names explanation and hints since release 2.8.

    >>> found = _break("Bad call\\n  Explanation: It is bad.\\n  Hint: Do not.\\n  Hint: Or do.", [])
    >>> found.reason, found.explanation, found.hints
    ('Bad call', 'It is bad.', ('Do not.', 'Or do.'))
    """
    own = _OWN_WORDS.get(text.partition(" ")[0])
    if own is not None:
        reason, explanation, hints = own
        return Break(reason, explanation, hints, tuple(stack), context=text)
    links = _LINK.findall(text)
    text = text.partition("For more details about this graph break")[0]
    reason, *rest = _FIELD.split(text)
    fields = [(name, " ".join(value.split())) for name, value in zip(rest[::2], rest[1::2], strict=True)]
    return Break(
        " ".join(reason.split()),
        " ".join(v for n, v in fields if n == "Explanation"),
        tuple(v for n, v in fields if n == "Hint"),
        tuple(stack),
        links[-1] if links else "",
        " ".join(v for n, v in fields if n == "Developer debug context"),
    )


class Account(NamedTuple):
    """Dynamo's metrics of frames, and its reasons for graph breaks, as it made them."""

    metrics: list[Any]
    reasons: list[Any]


class Watch:
    """Takes note of graphs and their guards while a program is compiled; `frames` then puts all together."""

    def __init__(self) -> None:
        self._graphs: dict[str, _Graph] = {}
        self._guards: dict[str, tuple[Guard, ...]] = {}

    def graph(self, gm: torch.fx.GraphModule) -> None:
        """To be called with each graph, before it is compiled."""
        called = (n for n in gm.graph.nodes if n.op in ("call_function", "call_method", "call_module"))
        reason: Any = getattr(gm, "compile_subgraph_reason", None)
        ended = reason if reason is not None and reason.graph_break else None
        self._graphs[_current_frame()] = _Graph(dict(Counter(map(_name, called)).most_common()), ended)

    def guards(self, guards: Iterable[Any]) -> None:
        """To be given to torch as ``guard_export_fn``."""
        self._guards[_current_frame()] = tuple(_guard(g) for g in sorted(guards, key=lambda g: g.sort_key()))

    def frames(self, account: Account) -> tuple[Frame, ...]:
        """Every frame that Dynamo took up, in that order."""
        reasons = list(account.reasons)
        return tuple(self._frame(m, reasons) for m in account.metrics if m.co_name is not None)

    def _frame(self, metrics: Any, reasons: list[Any]) -> Frame:
        number = str(metrics.compile_id)
        graph = self._graphs.get(number, _Graph())
        at = Line(metrics.co_filename, metrics.co_firstlineno, _function(metrics.co_name))
        breaks = tuple(_break(text, stack or [at]) for text, stack in _noted(graph, metrics, reasons) if text)
        return Frame(
            number,
            at,
            graph.ops,
            breaks,
            self._guards.get(number, ()),
            (metrics.recompile_reason or "").partition(": ")[2],
            (metrics.fail_reason or "").partition("\n")[0],
            (metrics.start_time_us or 0) / 1e6,
            (metrics.duration_us or 0) / 1e6,
        )


@contextlib.contextmanager
def accounted() -> Iterator[Account]:
    """What Dynamo notes of the frames compiled inside; filled when the context ends."""
    before = utils.get_compilation_metrics()
    met = len(_reasons())
    utils.set_compilation_metrics_limit(_METRICS)
    found = Account([], [])
    try:
        yield found
    finally:
        known = {id(m) for m in before}
        found.metrics.extend(m for m in utils.get_compilation_metrics() if id(m) not in known)
        found.reasons.extend(_reasons()[met:])
        utils.set_compilation_metrics_limit(utils.DEFAULT_COMPILATION_METRICS_LIMIT)


def _reasons() -> list[Any]:
    """Every reason for a graph break of this process so far."""
    return getattr(output_graph, "graph_break_reasons", [])


def _noted(graph: _Graph, metrics: Any, reasons: list[Any]) -> Iterator[tuple[str, list[Line]]]:
    """Why a frame broke, in Dynamo's words, and the lines where."""
    if graph.ended is not None:
        reasons[:] = [reason for reason in reasons if reason is not graph.ended]
        yield graph.ended.reason, [_line(s) for s in graph.ended.user_stack]
    elif not graph.ops:
        for text in sorted(metrics.restart_reasons or ()) or [metrics.fail_reason]:
            yield text, _stack(text, reasons)


def _stack(text: str, reasons: list[Any]) -> list[Line]:
    """The lines that the first of the reasons with this text names; taken out, so that the next frame has the next."""
    for index, reason in enumerate(reasons):
        if reason.reason == text:
            return [_line(s) for s in reasons.pop(index).user_stack]
    return []


def _current_frame() -> str:
    return str(CompileContext.current_compile_id())


def _name(node: torch.fx.Node) -> str:
    if node.op != "call_function":
        return str(node.target)
    return torch.typename(node.target) if not isinstance(node.target, torch._ops.OpOverload) else str(node.target)


def _guard(guard: Any) -> Guard:
    stack = list(guard.user_stack or ())
    checks = tuple(c for c in guard.code_list or () if not c.startswith("hasattr("))
    return Guard(guard.create_fn_name(), strip_local_scope(guard.name), checks, _line(stack[-1]) if stack else None)


def _line(summary: Any) -> Line:
    text = summary.line or linecache.getline(summary.filename, summary.lineno)
    return Line(summary.filename, summary.lineno, _function(summary.name), text.strip())


def _function(name: str) -> str:
    """The user's name for a function; what is left of one after a break has a name of Dynamo's."""
    while resumed := _RESUMED.match(name):
        name = resumed[1]
    return name


def recompilation(gm: torch.fx.GraphModule) -> Recompilation | None:
    """Which guard failed, where the frame whose graph is being compiled was compiled before."""
    noted = utils.get_metrics_context()._metrics
    reason = (noted.get("recompile_reason") or "").partition(": ")[2]
    if not reason:
        return None
    ended: Any = getattr(gm, "compile_subgraph_reason", None)
    stack = ended.user_stack if ended is not None else ()
    return Recompilation(_line(stack[0]) if stack else Line("", 0), reason)


def time_frame() -> None:
    """Have the frame whose graph is being compiled timed to its end, its guards included, as a span."""
    started = getattr(utils.get_metrics_context(), "_start_time_ns", 0)
    if started:
        _started.append(started / 1e9)
        if _frame_ended not in callback_handler.end_callbacks:  # torch._dynamo.reset() forgets them
            callback_handler.register_end_callback(_frame_ended)


_started: list[float] = []


def _frame_ended(*_: Any) -> None:
    while _started:
        _hook_calls.stage_ends(note(Stage.dynamo, _started.pop(), inner=Stage.autograd))
