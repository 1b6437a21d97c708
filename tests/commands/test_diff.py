"""``fairlead diff``: the exit status says whether, the lines say what."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from fairlead import ir

from .conftest import Command, small


def test_files_that_mean_the_same_are_equal_whatever_their_names(command: Command, file: Path) -> None:
    other = msgspec.structs.replace(small(), name="another")
    ir.write(file.with_name("other.fir"), other, locations=False)
    result = command("diff", file.name, "other.fir")
    assert (result.returncode, result.stderr) == (0, "")
    fingerprint = ir.fingerprint(small())
    assert result.stdout == (
        f"forward | another: equal, fingerprint {fingerprint}; only names, numbers or source lines differ\n"
    )


def test_a_difference_is_a_line_and_exit_status_1(command: Command, file: Path) -> None:
    ir.write(file.with_name("other.fir"), small("aten.tanh.default"))
    result = command("diff", file.name, "other.fir")
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        "forward: 3 differences",
        "  - node 1: %3 = aten.relu.default(%2) : f32[3, 4]",
        "  + node 1: %3 = aten.tanh.default(%2) : f32[3, 4]",
        "  ~ output 0: value: %3 (aten.relu.default) -> %3 (aten.tanh.default)",
    ]


def test_differences_as_json(command: Command, file: Path) -> None:
    ir.write(file.with_name("other.fir"), small("aten.tanh.default"))
    result = command("diff", file.name, "other.fir", "--json")
    assert result.returncode == 1
    (pair,) = json.loads(result.stdout)
    assert pair["graphs"] == ["forward", "forward"]
    changes = [line["change"] for line in pair["diff"]["differences"]]
    assert changes == ["removed", "added", "changed"]


def test_a_graph_that_the_other_file_lacks_is_a_difference(command: Command, file: Path) -> None:
    ir.write(file.with_name("two.fir"), ir.module(small(), msgspec.structs.replace(small(), name="more")))
    result = command("diff", file.name, "two.fir")
    assert result.returncode == 1
    assert "(no such graph) | more" in result.stdout
