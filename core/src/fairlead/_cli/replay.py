"""``fairlead replay``: the graphs of a file through a backend, beside what their ops mean in torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from fairlead._cli.files import FileArgument, chosen, read_file
from fairlead._cli.pairs import OptionPairs, SizePairs
from fairlead._cli.terminal import JsonOption, err, print_json, show
from fairlead._models import require_numpy, require_torch
from fairlead._pairs import given_options, given_sizes
from fairlead._registry import registry

if TYPE_CHECKING:
    from fairlead._compare._replay import Replay


NUMPY = "numpy"
"""The interpreter without torch; no backend has this name."""


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(replay)


def replay(
    file: FileArgument,
    backend: Annotated[str, typer.Option(help="Name of the backend to run.", show_default=False)],
    against: Annotated[str, typer.Option(help="What to compare with: eager, numpy, or a backend.")] = "eager",
    option: OptionPairs = [],  # noqa: B006 - typer's
    size: SizePairs = [],  # noqa: B006
    seed: Annotated[int, typer.Option(min=0, help="Of the inputs that the file has no tensors for.")] = 0,
    graph: Annotated[int | None, typer.Option(min=0, help="Number of the one graph.", show_default="all")] = None,
    json: Annotated[bool, JsonOption] = False,
) -> None:
    """Run the graphs of a file through a backend and compare every output. What the backend declines runs in eager.

    Options are those of the backend that is replayed, not of the one that it is compared with.

    Exit status 0 where every output agrees, 1 where one does not or the backend did not compile, 2 where nothing ran.
    """
    options, sizes = given_options(option), given_sizes(size)
    names = (backend,) if against in (NUMPY, backend) else (backend, against)
    for name in names:
        registry.wheel(name)  # raises the error that says what is installed
    opened = read_file(file)
    graphs = chosen(opened, file, graph)
    require_torch(f"replaying {file}")
    if against == NUMPY:
        require_numpy(f"replaying {file}")
    from fairlead._compare._replay import Example, check_backend, replay
    from fairlead._models._fir import check_sizes, given_constants

    check_sizes(opened, str(file), sizes)
    for name in names:
        check_backend(name, options if name == backend else None)
    found: list[Replay] = []
    with err.status(f"running {len(graphs)} graphs"):
        for number, each in enumerate(graphs, graph or 0):
            example = Example(given_constants(opened, number), seed, sizes)
            found.append(replay(each, example, backend, options, against))
    if json:
        print_json(found)
    else:
        for one in found:
            show(*_tables(one))
    if not all(one.agrees for one in found):
        raise typer.Exit(1)


def _tables(found: Replay) -> list[Table | Text]:
    table = Table(f"{found.graph} on {found.backend}", "type", "error", "rounding", "", box=box.SIMPLE_HEAD)
    for o in found.outputs:
        verdict = Text(o.problem, "red") if o.problem else Text("ok", "green")
        table.add_row(o.name, Text(o.type), f"{o.error:.1e}", f"{o.rounding:.1e}", verdict)
    end = Text("every output agrees", "green") if found.agrees else Text(found.problem or "outputs differ", "bold red")
    return [table, Text(str(found.placement)), end]
