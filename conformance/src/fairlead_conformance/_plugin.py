"""The pytest plugin, as every pytest sees it that runs where this wheel is installed: it does nothing unless asked.

``pytest --pyargs fairlead_conformance --backend=NAME`` asks. Only then are there options, and is the rest imported.
"""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["pytest_load_initial_conftests"]

PACKAGE = Path(__file__).parent

MODULES = (PACKAGE.name, f"{PACKAGE.name}.test_cases")


@pytest.hookimpl(trylast=True)  # after conftest files, whose options come first
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Register options and hooks, where the arguments name this package."""
    if not any(_asks(argument) for argument in args):
        return
    from fairlead_conformance import _pytest

    _pytest.add_options(parser)
    early_config.pluginmanager.register(_pytest.Conformance(), "fairlead_conformance.run")


def _asks(argument: str) -> bool:
    name = argument.partition("::")[0]
    return name in MODULES or (name.endswith("test_cases.py") and Path(name).absolute() == PACKAGE / "test_cases.py")
