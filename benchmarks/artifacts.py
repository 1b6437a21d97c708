"""What storing executables saves: ``python benchmarks/artifacts.py MODEL BACKEND...`` prints a table.

Compiling and loading are timed on the graphs of the model, in processor seconds, when the SDK is loaded and both have
been done once. To verify is to hash the weights, which `fairlead.artifacts` does beside what the backend loads.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import fairlead
from fairlead import artifacts
from fairlead._models._load import load
from fairlead.hooks import CompileJob, hookimpl, plugin_manager

ROUNDS = 5


class Jobs:
    """What is compiled, in order."""

    def __init__(self) -> None:
        self.found: list[CompileJob] = []

    @hookimpl(wrapper=True)
    def fairlead_compile(self, job: CompileJob) -> Any:
        self.found.append(job)
        return (yield)


def main() -> None:
    name, *backends = sys.argv[1:]
    print("| backend | compile, s | stored, KB | load, s | verify, s |\n|---|---|---|---|---|")
    for backend in backends:
        print(_row(backend, jobs_of(name, backend)), flush=True)


def jobs_of(name: str, backend: str) -> list[CompileJob]:
    """The Parts of the model that go to the backend."""
    jobs, model = Jobs(), load(name)
    plugin_manager().register(jobs)
    with torch.no_grad():
        fairlead.compile(model.module, backend=backend)(*model.args, **model.kwargs)
    plugin_manager().unregister(jobs)
    return [job for job in jobs.found if job.backend.name == backend]


def _row(backend: str, jobs: list[CompileJob]) -> str:
    seconds, kilobytes, secret = [0.0] * 3, 0.0, secrets.token_bytes(32)
    for job in jobs:
        made = job.backend.compile(job.graph, job.options, job.constants)
        data = job.backend.dump(made)  # type: ignore[attr-defined]
        artifact = artifacts.pack(job, made, secret)
        kilobytes += len(artifact) / 1000
        each: list[Callable[[], object]] = [
            lambda job=job: job.backend.compile(job.graph, job.options, job.constants),
            lambda job=job, data=data: job.backend.load(data, job.graph, job.options, job.constants),
            lambda job=job, artifact=artifact: artifacts.unpack(artifact, job, secret),
        ]
        seconds = [total + _least(run) for total, run in zip(seconds, each, strict=True)]
    compiled, loaded, unpacked = seconds
    return f"| {backend} | {compiled:.2f} | {kilobytes:.0f} | {loaded:.2f} | {max(unpacked - loaded, 0):.2f} |"


def _least(run: Callable[[], object]) -> float:
    """Processor seconds of the quickest of a few rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


if __name__ == "__main__":
    main()
