"""All backends in one process: one after the other, in threads, and in a child that is forked."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import torch

import fairlead
from tests.conftest import REPOSITORY
from tests.semantics.conftest import BACKENDS
from tests.semantics.nets import Mlp

_FORKED = """
import os, sys, torch, fairlead
from tests.semantics.nets import Mlp

torch.set_num_threads(2)
model, x = Mlp(256).eval(), torch.randn(400, 256)  # enough for both threads

def programs():
    return [fairlead.compile(model, backend=name, fallback="eager") for name in sys.argv[1:]]

def right(programs):
    return [torch.allclose(program(x), expected, atol=1e-5) for program in programs]

with torch.no_grad():
    expected, known = model(x), programs()
    found = right(known)
    child = os.fork()
    if not child:
        torch.set_num_threads(1)  # those of torch did not come along: without this its own kernels wait for them
        os._exit(0 if all(right(known)) and all(right(programs())) else 1)
    print(all(found), os.waitpid(child, 0)[1], all(right(known)))
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


def test_several_backends_compile_at_once_in_several_threads() -> None:
    models = {name: Mlp().eval() for name in BACKENDS}
    together, wrong = threading.Barrier(len(models)), []

    def work(name: str, model: Mlp) -> None:
        program = fairlead.compile(model, backend=name, max_fallback=0)
        x = torch.randn(3, 8)
        together.wait(timeout=60)
        with torch.no_grad():
            if not torch.allclose(program(x), model(x), atol=1e-5):
                wrong.append(name)

    threads = [threading.Thread(target=work, args=item, daemon=True) for item in models.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert [name for name, thread in zip(models, threads, strict=True) if thread.is_alive()] == []
    assert wrong == []


def test_a_forked_child_calls_and_compiles_and_its_parent_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _FORKED, *BACKENDS]
    nothing_cached = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}  # so that the child does compile
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=240, cwd=REPOSITORY, env=nothing_cached
    )
    assert done.stdout.split() == ["True", "0", "True"]
