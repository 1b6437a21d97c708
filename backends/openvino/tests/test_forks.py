"""A child that is forked compiles and calls, whatever its parent has let go of, and lets go of what it inherits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import gc, os, sys, torch
from torch import nn
from fairlead import compile

torch.set_num_threads(2)
x = torch.randn(400, 256)

def right(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    program = compile(model, backend="openvino", options={"threads": 2}, fallback=())
    return torch.allclose(program(x), model(x), atol=1e-4), program

with torch.no_grad():
    before = [right(seed) for seed in range(3)]
    found = [ok for ok, _ in before]
    if "all" in sys.argv:
        before.clear()
        torch._dynamo.reset()
        gc.collect()
    child = os.fork()
    if not child:
        torch.set_num_threads(1)  # its own did not come along
        before.clear()
        torch._dynamo.reset()
        gc.collect()
        os._exit(0 if all(right(seed)[0] for seed in range(3)) else 1)
    print(all(found), os.waitpid(child, 0)[1], right(7)[0])
"""


@pytest.mark.parametrize("let_go", ["all", "none"])
def test_a_forked_child_compiles_whatever_was_let_go(let_go: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, let_go]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "0", "True"], done.stderr


_CACHED = """
import gc, os, sys, torch
from torch import nn
from fairlead import compile

model, x = nn.Linear(256, 256), torch.randn(400, 256)
with torch.no_grad():
    compile(model, backend="openvino", options={"threads": 2, "cache_dir": sys.argv[1]}, fallback=())(x)
torch._dynamo.reset()
gc.collect()
before = sorted(os.listdir(sys.argv[1]))
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
print(bool(before), sorted(os.listdir(sys.argv[1])) == before)
"""


def test_a_fork_leaves_the_cache_as_it_is(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _CACHED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "True"], done.stderr
