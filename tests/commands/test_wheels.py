"""Subcommands that other wheels bring, and what becomes of the command line when such a wheel is broken."""

from __future__ import annotations

import pytest

from tests.conftest import Run, Site

from .conftest import Command, error

GREET = '''
import typer

def command(context: typer.Context, name: str, loud: bool = False) -> None:
    """Greet somebody. At length."""
    typer.echo(f"hello {name}{'!' if loud else ''} {context.obj.traceback}")
'''


def test_a_wheel_brings_a_subcommand_with_its_arguments(command: Command, site: Site) -> None:
    site.command("greet", GREET)
    result = command("--traceback", "greet", "ann", "--loud")
    assert (result.returncode, result.stdout, result.stderr) == (0, "hello ann! True\n", "")
    (line,) = (line for line in command("--help").stdout.splitlines() if "greet" in line)
    assert "Greet somebody." in line


def test_a_broken_subcommand_costs_one_line_of_the_help(command: Command, site: Site) -> None:
    site.command("greet", GREET)
    site.command("gone", "import a_module_that_is_missing")
    result = command("--help")
    assert (result.returncode, result.stderr) == (0, "")
    (line,) = (line for line in result.stdout.splitlines() if "gone" in line)
    assert "Broken: command 'gone' does not import: ModuleNotFoundError" in line
    assert "Greet somebody." in result.stdout
    result = command("gone", "x", "--loud")
    assert error(result).startswith("FL107: command 'gone' does not import: ModuleNotFoundError: No module named")
    assert "from: tool-gone 1.5 (tool_gone:command)" in result.stderr


def test_what_is_no_function_or_unreadable_for_typer_is_said(command: Command, site: Site) -> None:
    site.command("number", "command = 3")
    site.command("strange", "def command(x: 'Missing'): ...")
    assert error(command("number")) == "FL107: command 'number' is int, not a function"
    assert error(command("strange")).startswith("FL107: command 'strange' is no command of typer: ")


def test_two_wheels_with_one_subcommand_are_an_error_and_no_race(command: Command, site: Site) -> None:
    site.command("greet", GREET)
    site.wheel("rival", "0.7", {"fairlead.commands": {"greet": "rival:command"}})
    result = command("greet", "ann")
    assert error(result) == "FL107: 2 wheels bring a command 'greet'"
    assert "from: rival 0.7 (rival:command); tool-greet 1.5 (tool_greet:command)" in result.stderr


def test_nobody_takes_the_name_of_one_of_cores(command: Command, site: Site) -> None:
    site.command("op", "raise RuntimeError('imported')")
    assert command("op", "relu").returncode == 0
    help_ = command("--help").stdout
    assert "Broken" not in help_
    assert len([line for line in help_.splitlines() if line.startswith("│ op ")]) == 1


def test_an_unknown_subcommand_names_the_wheel_or_what_was_meant(command: Command, site: Site) -> None:
    site.command("greet", GREET)
    result = command("gret")
    assert error(result) == "FL703: fairlead has no command 'gret'"
    assert "from: commands: backends, doctor, " in result.stderr
    assert result.stderr.endswith("next: did you mean 'fairlead greet'?\n")
    assert command("zzz").stderr.endswith("next: 'fairlead --help' says what each does\n")


WITHOUT_WHEELS = """
import importlib.metadata, sys
importlib.metadata.entry_points = lambda **group: ()
sys.argv[1:] = [{name!r}]
from fairlead._cli import main
main()
"""


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("new-backend", "pip install fairlead-conformance"),
        ("conform", "pip install fairlead-conformance"),
        ("newbackend", "did you mean 'fairlead new-backend'? pip install fairlead-conformance"),
    ],
)
def test_a_known_subcommand_names_the_wheel_that_brings_it(run: Run, name: str, advice: str) -> None:
    result = run("-c", WITHOUT_WHEELS.format(name=name))
    assert error(result) == f"FL703: fairlead has no command {name!r}"
    assert result.stderr.endswith(f"next: {advice}\n")


def test_core_s_own_subcommands_read_no_entry_points_of_others(command: Command, site: Site) -> None:
    site.command("noisy", "print('imported')")
    assert "imported" not in command("op", "relu").stdout
