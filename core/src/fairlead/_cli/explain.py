"""``fairlead explain``: which graphs a model gives, where they break and why, what ran where, and how long it took."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead._cli.files import writable
from fairlead._cli.terminal import JsonOption, err, print_json, show
from fairlead._compare import require_report
from fairlead._models import check_spec
from fairlead._registry import registry

if TYPE_CHECKING:
    from fairlead.explanation import Explanation


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(explain)


def explain(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A bundled name, module:factory, file.py:factory, or a .fir file.", show_default=False
        ),
    ],
    backend: Annotated[str, typer.Option(help="Compile with this backend.")] = "inductor",
    train: Annotated[bool, typer.Option("--train", help="A training step: forward, loss and backward.")] = False,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Make the dimensions that may vary symbols.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with a timeline, which needs no network.")
    ] = None,
    json: Annotated[bool, JsonOption] = False,
) -> None:
    """Say which graphs a model gives, where they break and why, what ran where, and what took the time."""
    check_spec(model)
    registry.wheel(backend)  # raises the error that says what is installed
    if html is not None:
        writable(html, "fairlead explain --html")
        require_report()
    with err.status(f"compiling {model} with {backend}"):
        found = _explained(model, backend, train, dynamic)
    if html is not None:
        html.write_text(found.to_html(), "utf-8")
    if json:
        print_json(found)
    else:
        from fairlead.explanation._text import renderables

        show(*renderables(found))


def _explained(spec: str, backend: str, train: bool, dynamic: bool) -> Explanation:
    from fairlead._models._explained import explain_model
    from fairlead._models._load import load

    return explain_model(load(spec, training=train), backend, training=train, dynamic=dynamic)
