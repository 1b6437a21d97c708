"""What torch's guards cost a call of a model that computes nothing: docs/decisions/0016-guards-are-torchs.md.

    python benchmarks/guards.py [resnet50]

Each program gives back what it gave before, so that a call is guards, the weights that are collected, and what stands
around the program. Times are the fastest tenth of many calls, for one thread.
"""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import torch._dynamo.config
from torch._dynamo.eval_frame import _debug_get_cache_entry_list

import fairlead
from fairlead._models import Model
from fairlead._models._load import load
from fairlead._program import Program

CALLS = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="resnet50", help="a model as `fairlead compare` takes it")
    name = parser.parse_args().model
    torch.set_num_threads(1)
    with torch.no_grad():
        model = load(name)
        print(f"{name}, {len(tensors(model.module))} tensors, torch {torch.__version__}; ms a call\n")
        print("| | ms |\n| --- | ---: |")
        for what, seconds in rows(model).items():
            print(f"| {what} | {seconds * 1e3:.3f} |")


def rows(model: Model) -> dict[str, float]:
    """Seconds, by what was timed."""
    compiled = torch.compile(model.module, backend=kept)
    call = fastest(lambda: compiled(*model.args, **model.kwargs))
    guards = fastest(check_of(model))
    torch._dynamo.reset()
    with torch._dynamo.config.patch(use_recursive_dict_tags_for_guards=True):
        compiled = torch.compile(model.module, backend=kept)
        tagged = fastest(lambda: compiled(*model.args, **model.kwargs))
    torch._dynamo.reset()
    return {
        "torch.compile": call,
        "of which guards": guards,
        "torch.compile with `use_recursive_dict_tags_for_guards`": tagged,
        "fairlead.compile": fairlead_call(model),
    }


def kept(module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """A backend of torch.compile whose code computes nothing."""
    results = module(*inputs)
    return lambda *values: results


def check_of(model: Model) -> Callable[[], bool]:
    """The guards of the model's one compiled frame, as Dynamo asks them."""
    forward = type(model.module).forward
    (entry,) = _debug_get_cache_entry_list(forward.__code__)
    bound = inspect.signature(forward).bind(model.module, *model.args, **model.kwargs)
    bound.apply_defaults()
    frame = dict(bound.arguments)
    if not entry.guard_manager.check(frame):
        raise SystemExit("the guards do not hold for the frame that they were made for")
    return lambda: bool(entry.guard_manager.check(frame))


def fairlead_call(model: Model) -> float:
    """A call through Fairlead whose program gives back the first call's results."""
    compiled = fairlead.compile(model.module, backend="eager")
    compiled(*model.args, **model.kwargs)
    run, results = Program.__call__, list[Any]()

    def keep(program: Program, values: Any) -> Any:
        results.append(run(program, values))
        return results[-1]

    def again(program: Program, values: Any) -> Any:
        return results[0]

    with mock.patch.object(Program, "__call__", keep):
        compiled(*model.args, **model.kwargs)
    with mock.patch.object(Program, "__call__", again):
        return fastest(lambda: compiled(*model.args, **model.kwargs))


def fastest(function: Callable[[], Any]) -> float:
    """The time that a tenth of the calls stay below."""
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[CALLS // 10]


def tensors(module: torch.nn.Module) -> list[torch.Tensor]:
    return [*module.parameters(), *module.buffers()]


if __name__ == "__main__":
    main()
