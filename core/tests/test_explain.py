"""What `fairlead.explain` says is what happened: graphs, breaks, guards, recompilations, times."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
import torch

import fairlead
from fairlead._stages import Span, Stage, since, span
from fairlead.errors import BackendNotFoundError
from fairlead.explanation import Explanation


def prints(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print("between")
    return y.cos()


def branches(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if y.sum() > 0:
        y = y.relu()
    return y + 1


def lists(x: torch.Tensor) -> torch.Tensor:
    return inner(x + 1) * 2


def inner(x: torch.Tensor) -> torch.Tensor:
    return x * len(x.tolist())


def arrays(x: torch.Tensor) -> torch.Tensor:
    y = x.numpy() * 2
    if y.sum() > 0:
        y = y + 1
    if y.max() > 0:
        y = y * 2
    return torch.from_numpy(y)


def whole(x: torch.Tensor) -> torch.Tensor:
    return (x @ x.T).softmax(-1)


@pytest.fixture
def explained() -> Callable[..., Explanation]:
    torch._dynamo.reset()
    return lambda model, *args, **more: fairlead.explain(model, backend="eager", **more)(*args)


@pytest.mark.parametrize("model", [prints, branches, lists, arrays, whole])
def test_every_break_that_torch_names_is_named(explained: Callable[..., Explanation], model: Any) -> None:
    x = torch.ones(3, 3)
    found = explained(model, x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torchs = torch._dynamo.explain(model)(x)
    wanted = {(s.filename, s.lineno) for r in torchs.break_reasons for s in r.user_stack[-1:]}
    assert {(b.line.file, b.line.line) for b in found.breaks if b.line} >= wanted
    assert len(found.graphs) == torchs.graph_count


def test_a_break_has_its_line_its_reason_and_a_hint(explained: Callable[..., Explanation]) -> None:
    (printed,) = explained(prints, torch.ones(2)).breaks
    assert printed.line is not None
    assert (printed.line.function, printed.line.text) == ("prints", 'print("between")')
    assert "print" in printed.explanation
    assert printed.hints

    (branch,) = explained(branches, torch.ones(2)).breaks
    assert branch.reason == "a branch on the value of a tensor"
    assert branch.hints


def test_a_break_in_what_has_no_op_of_its_own_is_named_once(explained: Callable[..., Explanation]) -> None:
    (found,) = explained(lists, torch.ones(2)).breaks
    assert [line.function for line in found.stack] == ["lists", "inner"]
    assert found.line is not None
    assert found.line.text == "return x * len(x.tolist())"


def test_the_whole_step_is_explained_where_a_backward_follows(explained: Callable[..., Explanation]) -> None:
    layer = torch.nn.Linear(3, 2)
    found = explained(layer, torch.ones(4, 3), then=lambda y: y.sum().backward())
    assert [g.kind for g in found.placement.graphs] == ["forward", "backward"]
    assert layer.weight.grad is not None
    assert found.subject == "Linear"
    assert found.guards["TENSOR_MATCH"] >= 1


def test_the_stages_add_up_to_the_call(explained: Callable[..., Explanation]) -> None:
    found = explained(whole, torch.ones(3, 3))
    assert math.isclose(sum(found.times.values()), found.seconds, rel_tol=1e-6)
    assert {s.stage for s in found.spans} >= {Stage.autograd, Stage.capture, Stage.passes, Stage.placement}
    assert found.times["backend eager"] > 0
    assert found.times[Stage.dynamo] > found.times[Stage.capture] > 0


def test_spans_know_what_is_within_them() -> None:
    moment = max((s.start for s in since()), default=0.0)
    with span("outer"), pytest.raises(ValueError, match="inside"), span("inner", "of it"):
        raise ValueError("inside")
    outer, within = [s for s in since(moment) if s.stage in ("outer", "inner")]
    assert (outer.stage, within.stage, within.detail) == ("outer", "inner", "of it")
    assert outer.seconds >= within.seconds == within.own
    assert math.isclose(outer.own, outer.seconds - within.seconds, abs_tol=1e-9)


def test_compile_times_grow_with_each_program() -> None:
    before = fairlead.compile_times().stages
    compiled = fairlead.compile(whole, backend="eager")
    compiled(torch.ones(3, 3))
    after = fairlead.compile_times()
    for stage in (Stage.dynamo, Stage.autograd, Stage.passes, "backend eager"):
        assert after.stages[stage] > before.get(stage, 0.0)
    assert "backend eager" in str(after)


def test_a_program_tells_why_it_was_compiled_again() -> None:
    torch._dynamo.reset()
    compiled = fairlead.compile(lambda x: x + 1, backend="eager")
    compiled(torch.ones(3))
    assert compiled.fairlead.recompilations == ()
    compiled(torch.ones(4))
    (again,) = compiled.fairlead.recompilations
    assert "size mismatch at index 0. expected 3, actual 4" in again.reason
    assert again.line.file == __file__
    assert again.reason in str(again)


def test_a_second_program_is_explained_from_the_start(explained: Callable[..., Explanation]) -> None:
    first, second = explained(whole, torch.ones(3, 3)), explained(whole, torch.ones(3, 3))
    assert [f.ops for f in first.frames] == [f.ops for f in second.frames]
    assert second.seconds < 60 > first.seconds
    assert len(second.spans) == len(first.spans)


def test_what_was_compiled_too_often_is_explained_all_the_same(explained: Callable[..., Explanation]) -> None:
    with torch._dynamo.config.patch(recompile_limit=2):
        assert [len(explained(whole, torch.ones(3, 3)).frames) for _ in range(4)] == [1] * 4


def test_what_the_model_raises_is_raised(explained: Callable[..., Explanation]) -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("the model's own")

    with pytest.raises(ValueError, match="the model's own"):
        explained(fails, torch.ones(1))


def test_an_unknown_backend_is_refused_before_anything_runs() -> None:
    with pytest.raises(BackendNotFoundError, match="openvinoo"):
        fairlead.explain(whole, backend="openvinoo")


def test_json_has_everything(explained: Callable[..., Explanation]) -> None:
    found = explained(prints, torch.ones(2))
    data = json.loads(found.to_json())
    assert [f["ops"] for f in data["frames"]] == [f.ops for f in found.frames]
    assert data["placement"]["graphs"][0]["backend"] == "eager"


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.bars: list[dict[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [str(given[name]) for name in ("src", "href") if name in given]
        if str(given.get("class", "")).startswith("bar "):
            self.bars.append(given)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone_and_shows_every_stage(explained: Callable[..., Explanation]) -> None:
    found = explained(prints, torch.ones(2))
    page = _Page()
    page.feed(found.to_html())
    assert page.links == []
    assert len(page.bars) == len(found.frames) + len(found.spans)
    assert 'print("between")' in page.text
    for frame in found.frames:
        assert f"frame {frame.id}: {frame.line}" in " ".join(str(b["title"]) for b in page.bars)


def test_what_a_program_says_of_itself_is_no_markup(explained: Callable[..., Explanation]) -> None:
    found = explained(whole, torch.ones(2, 2))
    spans = (Span("passes", 0.0, 1.0, 1.0, "<b>"),)
    hostile = Explanation("<script>alert(1)</script>", "eager", found.frames, found.placement, spans, 1.0)
    assert "<script>" not in hostile.to_html()
    assert '<b>"' not in hostile.to_html()
