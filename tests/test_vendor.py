"""A vendor's wheel, built and installed, through the whole path from a user's program to its executable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .conftest import Run, Site

PROGRAM = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2), torch.nn.Softsign()).eval()
x = torch.linspace(-1, 1, 12).reshape(3, 4)
with torch.no_grad():
    expected = model(x)
    {compile}
    for batch in (x, x[:2], x[:1]):
        torch.testing.assert_close(compiled(batch), model(batch))
    model[0].weight.mul_(2)
    torch.testing.assert_close(compiled(x), model(x))
{check}
"""

PLACEMENT = """
placement = compiled.fairlead.placement
declined = {d.op: (d.backend, d.reason) for d in placement.declines}
assert declined == {"aten.abs.default": ("eager", "no rule for aten.abs.default")}, declined
assert 0.5 < placement.native_share < 1
"""


def installed(site: Site, wheels: dict[str, Path]) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site.folder)]
    subprocess.run([*pip, str(wheels["fairlead-acme"])], check=True, capture_output=True)


def test_a_vendor_s_backend_is_chosen_by_name(run: Run, site: Site, wheels: dict[str, Path]) -> None:
    installed(site, wheels)
    call = 'import fairlead; compiled = fairlead.compile(model, backend="acme", fallback=("eager",))'
    result = run("-W", "error", "-c", PROGRAM.format(compile=call, check=PLACEMENT))
    assert (result.returncode, result.stderr) == (0, "")


def test_torch_finds_a_vendor_s_backend_without_importing_fairlead_first(
    run: Run, site: Site, wheels: dict[str, Path]
) -> None:
    installed(site, wheels)
    call = 'compiled = torch.compile(model, backend="fairlead-acme", options={"trap": True, "fallback": ("eager",)})'
    result = run("-c", PROGRAM.format(compile=call, check=""))
    assert (result.returncode, result.stderr) == (0, "")
