"""One HTML page to look at graphs: zoomable, searchable, folded by module, and complete in itself."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from importlib import resources

import msgspec

from fairlead._page._data import View, view
from fairlead._page._verdicts import verdicts
from fairlead.ir import Graph, Module

__all__ = ["page"]


def page(title: str, module: Module, graphs: Sequence[Graph], backend: str = "") -> str:
    """The page: every graph with all its nodes, and the library that lays them out, in one text without references.

    With ``backend`` each node is coloured by what that backend says of it, which imports the backend. Raises
    `RegistryError` where there is no such backend.
    """
    judged = verdicts(backend, graphs) if backend else {}
    views = [view(graph, judged.get(number, {})) for number, graph in enumerate(graphs)]
    producer = ", ".join(f"{name} {version}" for name, version in module.producer.items())
    parts = {
        "title": html.escape(title),
        "subtitle": html.escape(f"{producer} · IR {module.ir_version[0]}.{module.ir_version[1]}".removeprefix(" · ")),
        "style": _resource("page.css"),
        "licence": _resource("dagre.LICENSE").replace("--", "- -"),
        "dagre": _resource("dagre.min.js").partition("//# sourceMappingURL=")[0],
        "script": _resource("page.js"),
        "data": _data(views, backend),
    }
    return _filled(_resource("page.html"), parts)


def _data(views: Sequence[View], backend: str) -> str:
    """As JSON inside of HTML: nothing in it can end the element that it stands in."""
    text = msgspec.json.encode({"graphs": views, "backend": backend}).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _filled(template: str, parts: Mapping[str, str]) -> str:
    head, *rest = template.split("{{")
    pieces = [head]
    for piece in rest:
        name, _, after = piece.partition("}}")
        pieces += [parts[name], after]
    return "".join(pieces)


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
