"""The subcommands, put together. Each is a module with ``register(app)``."""

from __future__ import annotations

import typer

from fairlead_conformance._cli import badge, coverage, diff, init, merge, repro, run, schema, scoreboard, verify

app = typer.Typer(
    name="fairlead-conformance", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
for command in (run, init, verify, merge, diff, repro, badge, scoreboard, coverage, schema):
    command.register(app)


@app.callback()
def conformance() -> None:
    """What a backend wheel has to do right."""
