from __future__ import annotations

import re

import msgspec
import pytest

from fairlead import ir
from fairlead.errors import IRFormatError, IRVersionError, VerificationError
from fairlead.ir import Graph, from_bytes, module, parse, parse_graph, to_bytes, to_text, verify

from .random_graphs import random_graph

SEEDS = 200


def test_text_reads_back_as_the_graph_that_it_shows() -> None:
    for seed in range(SEEDS):
        graph = verify(random_graph(seed))
        assert repr(parse_graph(to_text(graph, locations=True))) == repr(graph), seed
        assert to_text(parse_graph(to_text(graph))) == to_text(graph)


def test_bytes_read_back_as_the_module_that_they_hold() -> None:
    for seed in range(SEEDS):
        whole = module(random_graph(seed))
        again = from_bytes(to_bytes(whole))
        assert to_text(again) == to_text(whole) == to_text(parse(to_text(whole))), seed
        assert to_bytes(again) == to_bytes(whole)
        assert ir.fingerprint(again) == ir.fingerprint(whole) == ir.fingerprint(parse(to_text(whole)))


def test_a_module_of_several_graphs_reads_back(rich_graph: Graph, nested_graph: Graph) -> None:
    whole = module(rich_graph, nested_graph)
    assert repr(parse(to_text(whole, locations=True))) == repr(whole)


def test_a_text_without_a_header_is_a_module_of_its_graphs(small_graph: Graph) -> None:
    text = to_text(small_graph)
    assert parse(f"\n{text}\n\n{text.replace('@main', '@other')}\n") == module(
        parse_graph(text), msgspec.structs.replace(parse_graph(text), name="other"), producer={}
    )


def test_the_space_between_words_does_not_matter(small_graph: Graph) -> None:
    text = to_text(small_graph)
    assert parse_graph(re.sub(r"\n\s*", "\n\n\t  ", text).replace(" = ", "=").replace(" : ", "  :")) == parse_graph(
        text
    )


GOOD = """graph @main inference {
  in %0 user "x" : f32[2]
  %1 = aten.neg.default(%0) : f32[2]
  out %1 user
}"""
MALFORMED: list[tuple[str, str, str, str]] = [
    ("graph @main", "graf @main", "'graf @main inference", "line 1, column 1"),
    ("inference", "sideways", "'sideways', which is no kind", "line 1, column 1"),
    ("f32[2]\n  %1", "f7[2]\n  %1", "'f7', which is no dtype", "line 2, column 20"),
    ('user "x"', 'boss "x"', "'boss', which is no role", "line 2"),
    ("(%0)", "(%7)", "%7 is used before it is defined", "line 3, column 25"),
    ("%1 =", "%0 =", "%0 is defined twice", "line 3"),
    ("(%0)", "(%0", "': f32[2]", "line 3, column 28"),
    ("(%0)", "([" + "[" * 16 + "]" * 17 + ")", "lists nested more than 16 deep", "line 3"),
    ("(%0)", '("\\q")', "a string with Invalid \\escape", "line 3"),
    ("(%0)", "(123456789012345678901)", "where an argument belongs", "line 3, column 25"),
    ("(%0) : f32[2]", "(%0) : _", "a result and its type are both _ or neither", "line 3"),
    ("out %1 user", 'out "x" user', "an output that is a str", "line 4"),
    ("out %1 user", "out %1 user -> in99999999999999999999", "'-> in9999", "line 4"),
    ("}", "} }", "'}' where `graph @name kind {` belongs", "line 5, column 3"),
    ("(%0)", "(%0, ٣)", "where an argument belongs", "line 3"),
]


@pytest.mark.parametrize(("old", "new", "message", "where"), MALFORMED, ids=[m[1][:20] for m in MALFORMED])
def test_a_malformed_text_is_an_error_with_its_place(old: str, new: str, message: str, where: str) -> None:
    with pytest.raises(IRFormatError, match=re.escape(message)) as caught:
        parse(GOOD.replace(old, new), "g.txt")
    assert caught.value.where.startswith(f"g.txt, {where}")
    assert caught.value.next == "write the text again with fairlead.ir.to_text, or mend that line"


def test_regions_nested_too_deep_are_an_error() -> None:
    text = "graph @g inference {" + "a.b() { region @r region {" * 9 + "}" * 19
    with pytest.raises(IRFormatError, match="regions nested more than 8 deep"):
        parse(text)


def test_a_graph_that_breaks_a_rule_is_refused() -> None:
    with pytest.raises(VerificationError, match="symbol q is used but not declared"):
        parse(GOOD.replace("f32[2]", "f32[q]"))


def test_a_newer_text_is_named(small_graph: Graph) -> None:
    text = to_text(module(small_graph)).replace("fairlead-ir 1.0", "fairlead-ir 1.7")
    with pytest.raises(IRVersionError, match=r"it has IR version 1\.7; this Fairlead reads up to 1\.0"):
        parse(text)


def test_newer_bytes_are_named(small_graph: Graph) -> None:
    data = to_bytes(module(small_graph)).replace(b"fairlead-ir\x92\x01\x00", b"fairlead-ir\x92\x01\x07")
    with pytest.raises(IRVersionError, match=r"it has IR version 1\.7; this Fairlead reads up to 1\.0"):
        from_bytes(data)
    with pytest.raises(IRFormatError, match="its format is 'fairleading'"):
        from_bytes(to_bytes(small_graph).replace(b"fairlead-ir", b"fairleading"))
