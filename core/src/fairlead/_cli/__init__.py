"""The ``fairlead`` command. Light to import: a process that probes a backend needs none of what the terminal needs."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from fairlead.errors import FairleadError


@dataclass
class Invocation:
    """What holds for one run of the command, whichever its subcommand; typer passes it on as the context's object."""

    traceback: bool = False


def main() -> None:
    """Run the command; an error that Fairlead raises on purpose is three lines on stderr and exit status 2."""
    from fairlead._cli.app import app
    from fairlead._cli.terminal import print_error

    invocation = Invocation()
    try:
        app(obj=invocation)
    except FairleadError as error:
        if invocation.traceback:
            raise
        print_error(error)
        sys.exit(2)
