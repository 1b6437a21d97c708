"""The published JSON Schema of ``report.json``: made from the structs, shipped as a file that a test holds to them."""

from __future__ import annotations

from importlib import resources
from typing import Any

import msgspec

from fairlead_conformance._report._data import FORMAT, Report

__all__ = ["FILE", "generated", "published"]

FILE = "report.schema.json"


def published() -> str:
    """The text of the schema that this wheel ships."""
    return resources.files(__package__).joinpath(FILE).read_text("utf-8")


def generated() -> str:
    """The schema of the structs as they are."""
    (reference,), components = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Report of Fairlead's conformance suite, format {FORMAT}",
        **reference,
        "$defs": {name: _described(definition) for name, definition in components.items()},
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _described(definition: dict[str, Any]) -> dict[str, Any]:
    """With its docstring on one line: how Python indents one depends on its release."""
    text = definition.get("description", "")
    return {**definition, **({"description": " ".join(text.split())} if text else {})}
