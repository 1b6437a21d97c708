"""The page of a graph: complete in itself, with every node in it, and drawn by a real browser where there is one."""

from __future__ import annotations

import hashlib
import html.parser
import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead import ir
from fairlead._page import page
from fairlead._page._tree import LARGEST, tree
from fairlead.ir import DType, Graph, Input, Kind, Location, Node, Output, Role, TensorType, Value

F32 = TensorType(DType.f32, (4, 8))
VOID = frozenset({"meta", "input"})
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def network(layers: int, *, located: bool = True) -> Graph:
    """Layers of a linear op and an activation, each in a module of its own."""
    values = [Value(i, F32) for i in range(3 * layers + 1)]
    inputs = [Input(values[0], Role.user, "L['kwargs']['x']")]
    nodes = []
    for layer in range(layers):
        weight, middle, end = values[3 * layer + 1 : 3 * layer + 4]
        inputs.append(Input(weight, Role.parameter, f"net.layer.{layer}.fc.weight"))
        where = [Location("/home/ann/model.py", 7, "forward", f"net.layer.{layer}.{name}") for name in ("fc", "act")]
        given = where if located else [None, None]
        nodes.append(Node("aten.linear.default", (values[3 * layer], weight, None), (middle,), given[0]))
        nodes.append(Node("aten.relu.default", (middle,), (end,), given[1]))
    return Graph("net", Kind.inference, tuple(inputs), tuple(nodes), (Output(values[-1]),))


class Reader(html.parser.HTMLParser):
    """The elements of a page: that they nest, and what they hold."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def read(text: str) -> tuple[Reader, dict[str, Any]]:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader, json.loads(reader.texts["script"][0])


def test_the_page_is_well_formed_and_refers_to_nothing() -> None:
    text = page("net.fir", ir.module(network(3)), [network(3)])
    reader, _ = read(text)
    assert reader.references == []
    assert re.findall(r"(?i)https?:|url\(|@import|import\(|sourceMappingURL|fetch\(|XMLHttpRequest", text) == []
    assert "".join(reader.texts["title"]) == "Fairlead: net.fir"
    assert "Permission is hereby granted" in text


@pytest.mark.parametrize("located", [True, False])
def test_every_node_is_in_the_page_with_its_text_type_and_line(located: bool) -> None:
    graph = network(120, located=located)
    _, data = read(page("net.fir", ir.module(graph), [graph]))
    (view,) = data["graphs"]
    shown = [item["text"] for item in view["items"] if item["kind"] == "op"]
    assert shown == [ir.node_text(node) for node in graph.nodes]
    assert view["nodes"] == 240
    first = next(item for item in view["items"] if item["kind"] == "op")
    assert first["type"] == "f32[4, 8]"
    assert first.get("line", "") == ("/home/ann/model.py:7 in forward" if located else "")
    assert first["weights"] == ["%1 net.layer.0.fc.weight : f32[4, 8]"]


def test_items_are_in_the_groups_of_their_modules_and_edges_lead_back() -> None:
    graph = network(3)
    _, data = read(page("net.fir", ir.module(graph), [graph]))
    (view,) = data["graphs"]
    labels = [group["label"] for group in view["groups"]]
    linear = [item for item in view["items"] if item["label"] == "linear"][1]
    path = []
    group = linear["group"]
    while group:
        path.append(labels[group])
        group = view["groups"][group]["parent"]
    assert path[::-1] == ["net", "layer.1", "fc"]
    ((source, type_),) = linear["sources"]
    assert (view["items"][source]["label"], type_) == ("relu", "f32[4, 8]")
    assert view["items"][0]["label"] == "x"


def test_the_nodes_of_regions_are_in_the_page_inside_of_their_node() -> None:
    x, y = Value(0, F32), Value(1, F32)
    inner = Node("aten.neg.default", (x,), (y,))
    body = Graph("body", Kind.region, (Input(x),), (inner,), (Output(y),))
    node = Node("test.loop", (x,), (y,), Location("m.py", 1, "f", "net"), (body,))
    graph = Graph("g", Kind.inference, (Input(x),), (node,), (Output(y),))
    _, data = read(page("g.fir", ir.module(graph), [graph]))
    (view,) = data["graphs"]
    (neg,) = (item for item in view["items"] if item["label"] == "neg")
    assert view["groups"][neg["group"]]["label"].endswith("test.loop 0, region 0")
    assert view["items"][neg["sources"][0][0]]["kind"] == "in"
    assert sum(item["kind"] == "op" for item in view["items"]) == view["nodes"] == 2


@pytest.mark.parametrize("count", [0, 1, LARGEST, LARGEST + 1, 10_000])
def test_no_group_has_more_members_than_can_be_looked_at(count: int) -> None:
    groups, of = tree([()] * count)
    members = [0] * len(groups)
    for group in groups[1:]:
        members[group.parent] += 1
    for group in of:
        members[group] += 1
    assert max(members) <= LARGEST
    assert groups[0].items == count


def test_a_name_from_a_hostile_file_stays_text() -> None:
    evil = "</script><script>alert(1)</script><!--"
    graph = network(1)
    graph = msgspec.structs.replace(graph, name=evil, inputs=(Input(graph.inputs[0].value, name=evil), graph.inputs[1]))
    reader, data = read(page(evil, ir.module(graph), [graph]))
    assert data["graphs"][0]["name"] == evil
    assert len(reader.texts["script"]) == len(read(page("net", ir.module(network(1)), [network(1)]))[0].texts["script"])


def test_a_backend_s_verdict_is_with_each_node() -> None:
    graph = network(2)
    _, data = read(page("net.fir", ir.module(graph), [graph], "eager"))
    assert data["backend"] == "eager"
    assert {item["verdict"] for item in data["graphs"][0]["items"] if item["kind"] == "op"} == {"accepted"}


def test_the_library_in_the_page_is_the_one_that_was_reviewed() -> None:
    vendor = runpy.run_path(str(Path(__file__).parents[2] / "vendor.py"))
    for name, expected in vendor["FILES"].values():
        assert hashlib.sha256((vendor["TARGET"] / name).read_bytes()).hexdigest() == expected


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_a_browser_draws_it_folded_and_finds_a_node(tmp_path: Path) -> None:
    graph = network(120)
    text = page("net.fir", ir.module(graph), [graph])
    steps = """<script>addEventListener("load", () => {
      const root = document.documentElement, search = document.getElementById("search");
      root.dataset.before = root.dataset.boxes;
      search.value = "relu layer.77";
      search.dispatchEvent(new Event("input"));
      search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
    })</script>"""
    file = tmp_path / "page.html"
    file.write_text(text + steps, "utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=8000",
        f"--user-data-dir={tmp_path}",
    ]
    command = [str(BROWSER), *options, f"--user-data-dir={tmp_path}", "--dump-dom", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=90).stdout
    (root,) = re.findall(r"<html [^>]*>", dom)
    found = dict(re.findall(r'data-(\w+)="(\d+)"', root))
    assert int(found["before"]) <= LARGEST + 10
    assert int(found["boxes"]) > int(found["before"])
    assert found["found"] == "1"
    (details,) = re.findall(r"<aside.*?</aside>", dom, re.DOTALL)
    assert "net.layer.77.act" in details
    assert "/home/ann/model.py:7 in forward" in details
