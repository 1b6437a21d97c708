"""Progress of long work, on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def bar(title: str, total: int, shown: bool) -> Iterator[Callable[[str], None]]:
    """A bar of ``total`` steps; call what is given before each, with what it is about."""
    if not shown:
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total, completed=-1)
        yield lambda text: progress.update(task, advance=1, description=f"{title} {text}")
