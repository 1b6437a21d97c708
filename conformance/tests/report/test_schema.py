"""The published schema is that of the structs, and says what is needed to refuse what they refuse."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from fairlead_conformance import Status
from fairlead_conformance._report import published
from fairlead_conformance._report._schema import generated

from .fixtures import report


def test_the_published_schema_is_the_one_of_the_structs() -> None:
    assert published() == generated(), "run `make api` if this is meant"


def test_every_object_of_ours_is_closed_and_every_status_named() -> None:
    definitions = json.loads(published())["$defs"]
    structs = {name: d for name, d in definitions.items() if d.get("type") == "object"}
    assert {"Report", "Result", "Run", "Judged", "KnownFailure", "Figure"} <= structs.keys()
    assert [name for name, d in structs.items() if d["additionalProperties"]] == []
    assert definitions["Status"]["enum"] == sorted(Status)


def test_a_report_has_the_fields_that_the_schema_requires_and_no_other() -> None:
    definitions = json.loads(published())["$defs"]

    def check(value: Any, schema: dict[str, Any]) -> None:
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rpartition("/")[2]]
        if schema.get("type") == "object" and schema.get("additionalProperties") is False:
            assert set(schema["required"]) <= value.keys() <= schema["properties"].keys()
            for name, part in value.items():
                check(part, schema["properties"][name])
        if schema.get("type") == "array":
            for part in value:
                check(part, schema.get("items", {}))

    check(json.loads(msgspec.json.encode(report())), {"$ref": "#/$defs/Report"})
