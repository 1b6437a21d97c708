"""All backends in one process: one after the other, in threads, and in a child that is forked."""

from __future__ import annotations

import subprocess
import sys
import threading

import torch

import fairlead
from tests.conftest import REPOSITORY
from tests.semantics.conftest import BACKENDS
from tests.semantics.nets import Mlp

_FORKED = """
import os, sys, torch, fairlead
from tests.semantics.nets import Mlp

model, x = Mlp().eval(), torch.randn(3, 8)
compiled = [fairlead.compile(model, backend=name) for name in sys.argv[1:]]
with torch.no_grad():
    expected = model(x)
    right = lambda: [torch.allclose(program(x), expected, atol=1e-5) for program in compiled]
    found = right()
    torch.set_num_threads(1)  # those of torch do not come along either
    child = os.fork()
    if not child:
        os._exit(0 if all(right()) else 1)
    print(all(found), os.waitpid(child, 0)[1], all(right()))
"""


def test_every_backend_runs_the_same_model_from_several_threads_at_once() -> None:
    model = Mlp().eval()
    compiled = {name: fairlead.compile(model, backend=name) for name in BACKENDS}
    with torch.no_grad():
        for program in compiled.values():
            program(torch.randn(3, 8))
    wrong: list[str] = []

    def work(seed: int) -> None:
        x = torch.randn(3, 8, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            expected = model(x)
            for _ in range(5):
                wrong.extend(n for n, run in compiled.items() if not torch.allclose(run(x), expected, atol=1e-5))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [name for name, run in compiled.items() if run.fairlead.placement.declines] == []


def test_a_forked_child_gets_right_results_and_its_parent_too() -> None:
    command = [sys.executable, "-W", "ignore", "-c", _FORKED, *BACKENDS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, cwd=REPOSITORY)
    assert done.stdout.split() == ["True", "0", "True"]
