"""Subcommands that other wheels bring: entry points of the group ``fairlead.commands``, functions for typer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import typer
from typer.core import TyperGroup

from fairlead._messages import cause, listed, nearest
from fairlead.errors import CommandNotFoundError, FairleadError, PluginError

GROUP = "fairlead.commands"

KNOWN = {"conform": "fairlead-conformance", "new-backend": "fairlead-conformance"}
"""Commands by name whose wheel an error can name where it is not installed."""


class Commands(TyperGroup):
    """Core's own subcommands, and those of other wheels.

    Entry points are read where a name is not core's, or all commands are listed. A function that does not import
    stands in the list with the reason, and raises it when it is called; nobody takes a name of core's.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *sorted(self._foreign.keys() - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in self._foreign:
            return own
        try:
            return _command(cmd_name, _function(cmd_name, self._foreign[cmd_name]))
        except FairleadError as error:
            return _broken(cmd_name, error)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            raise _not_found(args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    @functools.cached_property
    def _foreign(self) -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
        found: dict[str, tuple[metadata.EntryPoint, ...]] = {}
        for entry in metadata.entry_points(group=GROUP):
            found[entry.name] = (*found.get(entry.name, ()), entry)
        return found


def _function(name: str, entries: tuple[metadata.EntryPoint, ...]) -> Callable[..., Any]:
    wheels = [_wheel(entry) for entry in entries]
    if len(entries) > 1:
        raise PluginError(
            f"{len(entries)} wheels bring a command {name!r}",
            where="; ".join(sorted(wheels)),
            next="uninstall all of them but one",
        )
    try:
        function = entries[0].load()
    except (Exception, SystemExit) as error:  # foreign code: whatever its import raises
        raise PluginError(
            f"command {name!r} does not import: {cause(error)}",
            where=wheels[0],
            next="fix or uninstall the wheel",
        ) from error
    if not callable(function):
        raise PluginError(
            f"command {name!r} is {type(function).__name__}, not a function",
            where=wheels[0],
            next="point the entry point at a function with typer's annotations",
        )
    return function  # type: ignore[no-any-return]  # a callable, as far as one can see


def _command(name: str, function: Callable[..., Any], **settings: Any) -> Any:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    try:
        app.command(name, **settings)(function)
        return typer.main.get_command(app)
    except Exception as error:  # foreign code: annotations that typer cannot read
        raise PluginError(
            f"command {name!r} is no command of typer: {cause(error)}",
            where=f"{function.__module__}.{function.__qualname__}",
            next="fix its annotations, or uninstall the wheel",
        ) from error


def _broken(name: str, error: FairleadError) -> Any:
    def fail() -> None:
        raise error

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return _command(name, fail, help=f"Broken: {error.what}", context_settings=anything)


def _not_found(name: str, names: list[str]) -> CommandNotFoundError:
    close = nearest(name, [*names, *KNOWN])
    meant = f"did you mean 'fairlead {close}'? " if close and close != name else ""
    if close is None:
        advice = "'fairlead --help' says what each does"
    else:
        advice = f"{meant}pip install {KNOWN[close]}" if close not in names else meant.rstrip()
    return CommandNotFoundError(f"fairlead has no command {name!r}", where=f"commands: {listed(names)}", next=advice)


def _wheel(entry: metadata.EntryPoint) -> str:
    wheel = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "unknown wheel"
    return f"{wheel} ({entry.value})"
