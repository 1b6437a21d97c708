"""``fairlead verify``: whether a file keeps every rule of the IR, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from fairlead import ir
from fairlead._cli.files import FileArgument, read_file
from fairlead._cli.terminal import JsonOption, print_error, print_json, show
from fairlead.errors import IRError
from fairlead.ir.infer import verify_types


class GraphSummary(msgspec.Struct, frozen=True):
    """One graph of a file, in numbers. ``ops``: how many different ones."""

    name: str
    kind: ir.Kind
    inputs: int
    nodes: int
    outputs: int
    ops: int
    symbols: tuple[str, ...]
    fingerprint: str

    @classmethod
    def of(cls, graph: ir.Graph) -> GraphSummary:
        nodes = list(graph.walk())
        return cls(
            graph.name,
            graph.kind,
            len(graph.inputs),
            len(nodes),
            len(graph.outputs),
            len({n.op for n in nodes}),
            tuple(s.name for s in graph.symbols),
            ir.fingerprint(graph),
        )


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What the command finds. Where the file is not valid, the lines of the error, and nothing of its content."""

    file: str
    valid: bool
    code: str = ""
    problem: str = ""
    where: str = ""
    bytes: int = 0
    ir_version: str = ""
    fingerprint: str = ""
    producer: dict[str, str] = {}
    weights: str = ""
    graphs: tuple[GraphSummary, ...] = ()
    ops: dict[str, ir.OpUse] = {}


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(verify)


def verify(file: FileArgument, json: Annotated[bool, JsonOption] = False) -> None:
    """Check a file against every rule of the IR, its types against its ops, and say what is in it.

    Exit status 1 where it is malformed or breaks a rule, with position and rule; 2 where it cannot be opened.
    """
    try:
        opened = read_file(file)
        for graph in opened.module.graphs:
            verify_types(graph)
        found = content(file, opened)
    except IRError as error:
        found = Verification(file=str(file), valid=False, code=error.code, problem=error.what, where=error.where)
        if not json:
            print_error(error)
    if json:
        print_json(found)
    elif found.valid:
        show(*_tables(found))
    if not found.valid:
        raise typer.Exit(1)


def content(path: Path, file: ir.File) -> Verification:
    """What is in a valid file."""
    return Verification(
        file=str(path),
        valid=True,
        bytes=path.stat().st_size,
        ir_version="{}.{}".format(*file.module.ir_version),
        fingerprint=ir.fingerprint(file.module),
        producer=dict(file.module.producer),
        weights=file.weights,
        graphs=tuple(map(GraphSummary.of, file.module.graphs)),
        ops=file.module.ops,
    )


def _tables(found: Verification) -> list[Table | Text]:
    head = Table(found.file, "valid", box=box.SIMPLE_HEAD)
    head.add_row("size", f"{found.bytes:,} bytes")
    head.add_row("IR version", found.ir_version)
    head.add_row("made with", ", ".join(f"{name} {version}" for name, version in found.producer.items()))
    head.add_row("weights", found.weights)
    head.add_row("fingerprint", found.fingerprint)
    graphs = Table("graph", "kind", "inputs", "nodes", "outputs", "ops", "symbols", "fingerprint", box=box.SIMPLE_HEAD)
    for g in found.graphs:
        numbers = map(str, (g.inputs, g.nodes, g.outputs, g.ops))
        graphs.add_row(Text(g.name, "bold"), g.kind, *numbers, " ".join(g.symbols), g.fingerprint[:16])
    ops = Table("op", "version", "signature", box=box.SIMPLE_HEAD)
    for name, use in found.ops.items():
        ops.add_row(name, str(use.version), Text(use.signature))
    return [head, graphs, ops]
