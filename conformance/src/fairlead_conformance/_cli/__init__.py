"""The ``fairlead-conformance`` command: a module for each subcommand, put together in `app`."""

from __future__ import annotations

import sys

from fairlead.errors import FairleadError


def main() -> None:
    """Run the command; an error that is raised on purpose is three lines on stderr and exit status 2."""
    from fairlead_conformance._cli.app import app

    try:
        app()
    except FairleadError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
