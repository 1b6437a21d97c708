"""Options of commands that have the form NAME=VALUE and may be repeated; `fairlead._pairs` reads them."""

from __future__ import annotations

from typing import Annotated

import typer

OptionPairs = Annotated[
    list[str], typer.Option("--option", metavar="NAME=VALUE", help="An option of the backend; may be repeated.")
]
SizePairs = Annotated[
    list[str],
    typer.Option("--size", metavar="SYMBOL=N", help="The size of a symbol in a .fir file; may be repeated."),
]
