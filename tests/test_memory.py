"""What docs/memory.md says of weights that are held twice, measured in a process for each backend."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fairlead._arguments import request_of
from fairlead._compare._format import CELLS
from fairlead.errors import ArgumentError

from .conftest import REPOSITORY, Run

PACKING = ("onnxrt", "openvino", "openxla", "ipex", "tvm")
"""Backends that hold a copy of the weights of products, which docs/memory.md says of them."""

SCRIPT = """
import json, sys
import torch
import fairlead
from fairlead._compare._usage import MemoryMark

def layers(width, count):
    return torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(count))).eval()

torch.set_num_threads(1)
name, model, x = sys.argv[1], layers(4096, 3), torch.randn(4, 4096)
weights = sum(p.nbytes for p in model.parameters()) / 2**20
found = {"weights": weights}
with torch.no_grad():
    expected = model(x)  # every page of the weights is resident
    fairlead.compile(layers(64, 1), backend=name, dynamic=False)(torch.randn(2, 64))  # the SDK is loaded
    for shared in (False,) if name == "inductor" else (True, False):
        compiled = fairlead.compile(model, backend=name, fallback="eager", dynamic=False, share_weights=shared)
        mark = MemoryMark()
        torch.testing.assert_close(compiled(x), expected)
        memory = mark.since()
        found["shared" if shared else "held"] = memory.held / weights
        found["native"] = compiled.fairlead.placement.native_share
        del compiled
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's high-water mark is read from /proc")
@pytest.mark.parametrize("name", ["inductor", *PACKING])
def test_weights_are_held_as_the_page_says(run: Run, name: str) -> None:
    """In units of the weights, 192 MiB: what a backend holds beyond the model, and with `share_weights`."""
    done = run("-c", SCRIPT, name)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["weights"] > 190
    assert found["native"] == 1.0
    if name in PACKING:
        assert 0.8 < found["held"] < 1.5, found
        assert found["shared"] < 0.5, found
    else:
        assert found["held"] < 0.5, found
    page = Path(REPOSITORY, "docs/memory.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    assert ("| a copy |" in row) is (name in PACKING)


def test_compare_shows_what_is_held_beside_the_peak() -> None:
    assert CELLS[-2:] == ("peak, MiB", "held, MiB")


def test_sharing_is_asked_for_in_options_too_and_is_true_or_false() -> None:
    assert request_of("eager", None, {"share_weights": True}).share_weights
    with pytest.raises(ArgumentError) as caught:
        request_of("eager", None, {"share_weights": "yes"})
    assert caught.value.what == "share_weights is 'yes'"
