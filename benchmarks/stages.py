"""Where the seconds of a first call go: ``python benchmarks/stages.py MODEL BACKEND`` prints them as JSON.

Functions of Fairlead are timed in place, in processor seconds, which a busy machine does not change much. What is left
of the first call is torch's own: Dynamo, AOTAutograd, and running once. Python's collector visits all objects alive,
most of them torch's, in the middle of whatever allocates the next one: it is a stage of its own.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fairlead._models._load import load
from fairlead.hooks import CompileJob, hookimpl, plugin_manager

TIMED = {
    "read": ("fairlead._capture", "graph_of"),
    "order": ("fairlead._capture", "arranged"),
    "passes": ("fairlead._compile", "Session.build"),
    "bind": ("fairlead._program", "Program._made"),
    "import": ("fairlead._compile", "registry.ready"),
}
"""Stages of core: the module where a caller looks the function up, and its name there."""

LOWERING = {"onnxrt": "fairlead_onnxrt._session", "openvino": "fairlead_openvino._compiled"}
"""Backends that lower to ONNX, with the module that calls ``lower``."""


class Stages:
    """Processor seconds by stage; a stage within another counts for itself alone."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._collecting = 0.0
        self._within = 0.0
        gc.callbacks.append(self._collect)

    def now(self) -> float:
        """Processor seconds so far, those of the collector left out."""
        return time.process_time() - self.seconds["collector"]

    def _collect(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.process_time()
        else:
            self.seconds["collector"] += time.process_time() - self._collecting

    def time(self, stage: str, module: str, name: str) -> None:
        """Count the seconds of a function as those of a stage."""
        *owner, attribute = name.split(".")
        holder = functools.reduce(getattr, owner, importlib.import_module(module))
        setattr(holder, attribute, self._timed(stage, getattr(holder, attribute)))

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self._stage(stage):
                return function(*args, **kwargs)

        return timed

    @contextlib.contextmanager
    def _stage(self, stage: str) -> Iterator[None]:
        outer, self._within = self._within, 0.0
        start = self.now()
        try:
            yield
        finally:
            taken = self.now() - start
            self.seconds[stage] += taken - self._within
            self._within = outer + taken

    @hookimpl(wrapper=True)
    def fairlead_compile(self, job: CompileJob) -> Any:
        with self._stage("vendor"):
            return (yield)


def measure(spec: str, backend: str) -> dict[str, float]:
    """Processor seconds by stage: ``ours`` is all that is neither torch's nor the vendor's."""
    import fairlead

    model, stages = load(spec), Stages()
    for stage, (module, name) in TIMED.items():
        stages.time(stage, module, name)
    if backend in LOWERING:
        stages.time("lower", LOWERING[backend], "lower")
    plugin_manager().register(stages, "stages")
    start = time.process_time()
    stages.seconds.clear()
    with torch.no_grad():
        fairlead.compile(model.module, backend=backend)(*model.args, **model.kwargs)
    seconds = stages.seconds
    seconds["first call"] = time.process_time() - start
    seconds["ours"] = sum(seconds[stage] for stage in ("read", "order", "passes", "bind", "lower"))
    return dict(seconds)


def measure_apart(spec: str, backend: str) -> dict[str, float]:
    """The same in a process of its own, as every first call is somebody's first."""
    command = [sys.executable, __file__, spec, backend]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
