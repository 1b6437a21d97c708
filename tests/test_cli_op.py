"""``fairlead op`` shows what the opset says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fairlead._cli import op_pages
from fairlead.ir import opset

from .conftest import Run


def test_an_op_is_named_in_full_or_in_part(forked: Run) -> None:
    full, short = (forked("-m", "fairlead", "op", name).stdout for name in ("aten.gelu.default", "gelu"))
    assert full == short
    assert 'aten.gelu.default(Tensor self, *, str approximate="none") -> Tensor' in full


def test_several_ops_are_a_table(forked: Run) -> None:
    found = json.loads(forked("-m", "fairlead", "op", "scaled_dot_product", "--json").stdout)
    assert [row["id"] for row in found] == [
        "nn.scaled_dot_product_attention",
        "nn.scaled_dot_product_attention_backward",
    ]
    lines = forked("-m", "fairlead", "op", "clamp").stdout.splitlines()
    assert [line.split()[0] for line in lines if "aten." in line] == ["aten.clamp.Tensor", "aten.clamp.default"]
    assert lines[-1] == f"2 of the {len(opset.specs())} ops of opset 1"


def test_an_unknown_op_is_an_error_with_the_nearest(forked: Run) -> None:
    result = forked("-m", "fairlead", "op", "gleu")
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        "FL203: no op of the IR is called 'gleu'",
        f"  from: opset 1, {len(opset.specs())} ops; what a program registers itself is not among them",
        "  next: did you mean 'aten.gelu.default'? 'fairlead op' lists them all",
    ]


def test_there_is_a_page_for_each_op_and_one_that_lists_them(tmp_path: Path) -> None:
    assert op_pages.write_pages(tmp_path / "ops") == len(opset.specs())
    pages = {p.name.removesuffix(".md"): p.read_text("utf-8") for p in tmp_path.glob("ops/*.md")}
    index = pages.pop("index")
    assert pages.keys() == opset.specs().keys()
    assert set(re.findall(r"\]\((\S+)\.md\)", index)) == pages.keys()


def test_a_page_says_all_that_the_table_does() -> None:
    found = opset.spec("aten.silu.default")
    assert found is not None
    text = op_pages.page(found)
    assert text.startswith(
        "# aten.silu.default\n\nself * sigmoid(self).\n\n```\naten.silu.default(Tensor self) -> Tensor\n```"
    )
    assert "| tier | nn: composites of neural networks" in text
    assert "| version | 1, since opset 1 |" in text
    assert "| correct results differ by | at most 4 ulp |" in text
    assert "| decomposition | `fairlead.passes.decompose`, unless a backend keeps it |" in text
    assert "| interpreters | `fairlead.interpret`, `fairlead.numpy` |" in text
    assert "| dtype and shape | `fairlead.ir.infer`: " in text
    assert "| self | `Tensor` |  |" in text
