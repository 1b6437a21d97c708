"""``fairlead.bisect``, and the line that says what it is at."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fairlead._bisect._ladder import Limits, bisect_model
from fairlead._models import Model
from fairlead.bisection import Bisection
from fairlead.errors import ArgumentError

__all__ = ["bisect"]


def bisect(
    model: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backend: str,
    options: Mapping[str, Any] | None = None,
    training: bool = False,
    folder: str | Path = ".",
    seconds: float = 600.0,
    timeout: float = 120.0,
    progress: bool | None = None,
) -> Bisection:
    """Why a model fails on a backend: the first rung of the ladder that breaks, and the smallest graph that shows it.

    The model is run in eager, by the interpreter of the IR, and where that breaks by torch's ``aot_eager``; then each
    Part is given to the backend, in a process of its own, and its results are compared with float64 by the rule of
    ``fairlead compare``. The first Part that crashes, raises, hangs or is wrong is made smaller as long as it fails in
    the same way, and written to ``folder`` as a ``.fir`` file with a script of at most 30 lines. Where no Part fails,
    a single node is searched whose result is wrong although it does not show in what its Part gives.

    A deep copy of the model is called; ``training`` adds a loss and its backward, with the model in the mode that it
    is in. ``timeout`` is for each Part that the backend compiles and runs: one without an answer by then hangs; a
    smaller graph does after a quarter of it. After ``seconds`` no further graph is tried. Ctrl-C ends the search as
    well; both return what is known so far. ``progress``: a line on stderr of what is being tried, by default where
    that is a terminal.

    Raises `RegistryError` for a backend that cannot be used here, or not in another process, as one that was
    registered at run time. What only shows when Parts run one after another, or again, is not found.

    >>> found = bisect(torch.nn.Linear(2, 2), [torch.ones(1, 2)], backend="eager")
    >>> found.rung, found.trials
    (None, 2)
    """
    if seconds <= 0 or timeout <= 0:
        raise ArgumentError(
            f"seconds is {seconds:g} and timeout {timeout:g}", where="fairlead.bisect", next="pass more than 0 of both"
        )
    module = copy.deepcopy(model) if isinstance(model, torch.nn.Module) else _Function(model)
    name = type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", repr(model))
    example = Model(name, module, tuple(args), dict(kwargs or {}))
    limits = Limits(seconds, timeout, Path(folder))
    with noted(sys.stderr.isatty() if progress is None else progress) as note:
        return bisect_model(example, backend, options or {}, limits, note, training=training)


class _Function(torch.nn.Module):
    """A module around what is none."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


@contextlib.contextmanager
def noted(shown: bool) -> Iterator[Callable[[str], None]]:
    """A function that says on stderr what is being done; it says nothing where it is not to be shown."""
    if not shown:
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text)
