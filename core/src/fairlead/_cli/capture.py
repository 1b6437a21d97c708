"""``fairlead capture``: the graphs of a model into a file, without compiling anything."""

from __future__ import annotations

import enum
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from fairlead import ir
from fairlead._cli.dtypes import FloatType
from fairlead._cli.files import writable
from fairlead._cli.terminal import JsonOption, err, print_json, show
from fairlead._cli.verify import Verification, content
from fairlead._models import check_spec

if TYPE_CHECKING:
    from fairlead._models._captured import CapturedGraphs


class Weights(enum.StrEnum):
    """What becomes of the tensors."""

    inline = "inline"
    none = "none"
    random = "random"


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(capture)


def capture(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A bundled name, module:factory, file.py:factory, or a .fir file.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .fir file to write.")],
    train: Annotated[bool, typer.Option("--train", help="Forward and backward graphs of a training step.")] = False,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Make the dimensions that may vary symbols.")] = False,
    weights: Annotated[
        Weights, typer.Option(help="Keep the weights, leave them out, or keep only their distribution.")
    ] = Weights.inline,
    dtype: Annotated[FloatType | None, typer.Option(help="Turn weights and inputs into this type first.")] = None,
    no_locations: Annotated[
        bool, typer.Option("--no-locations", help="Leave out source lines, which hold paths of this machine.")
    ] = False,
    json: Annotated[bool, JsonOption] = False,
) -> None:
    """Capture a model and write all its graphs into one file. No backend takes part, and nothing is compiled."""
    check_spec(model)
    writable(output, "fairlead capture -o")
    with err.status(f"capturing {model}"):
        from fairlead._signatures import registered_ops

        found = _captured(model, train, dynamic, dtype)
        module = ir.module(*found.graphs, ops=registered_ops(*found.graphs))
        ir.write(output, module, found.constants, weights=weights.value, locations=not no_locations)
    summary = content(output, ir.read(output))
    if json:
        print_json(summary)
    else:
        show(*_tables(summary, found), *(Text(note, "yellow") for note in found.left_out))


def _captured(spec: str, training: bool, dynamic: bool, dtype: FloatType | None) -> CapturedGraphs:
    from fairlead._compare._reference import example, with_dynamic
    from fairlead._models._captured import capture_model, mark
    from fairlead._models._load import load, with_dtype

    model = load(spec, training=training)
    if dtype is not None:
        model = with_dtype(model, ir.DType(dtype.value))
    if dynamic:
        model = with_dynamic(model)
    tensors = example(model, dynamic)
    if dynamic:
        mark(model, tensors)
    return capture_model(model, tensors, training=training)


def _tables(summary: Verification, found: CapturedGraphs) -> list[Table | Text]:
    table = Table("graph", "nodes", "ops", "inputs", "outputs", "fingerprint", box=box.SIMPLE_HEAD)
    for g in summary.graphs:
        table.add_row(Text(g.name, "bold"), *map(str, (g.nodes, g.ops, g.inputs, g.outputs)), g.fingerprint[:16])
    counts = Counter(node.op for graph in found.graphs for node in graph.walk())
    most = ", ".join(f"{op} x{count}" for op, count in counts.most_common(5))
    written = Text.assemble((summary.file, "bold"), f": {summary.bytes:,} bytes, weights {summary.weights}, ")
    return [table, Text(f"most frequent: {most}", "dim"), written.append(f"fingerprint {summary.fingerprint[:16]}")]
