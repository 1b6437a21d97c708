"""What rots under load: threads, errors, hundreds of calls, many programs at once."""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import ctypes
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

import fairlead
from fairlead_conformance._case import Case, Level
from fairlead_conformance._device import memory_held
from fairlead_conformance._observation import Observation
from fairlead_conformance._programs import Trial, Twin, attributed, cases_of, check, checks_of, run_check
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]

_MEBIBYTE = 2**20


class _Mlp(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Any:
        return self.down(torch.relu(self.up(x)))


def _warm(trial: Trial, *shape: int) -> Twin:
    """A compiled net that was called twice, so that later calls compile nothing."""
    twin = trial.compile(trial.made(_Mlp))
    for _ in range(2):
        twin(trial.normal(*shape))
    return twin


def _call(trial: Trial, twin: Twin, count: int, *shape: int) -> None:
    """Calls whose results nobody keeps."""
    for _ in range(count):
        with torch.no_grad():
            twin.alone(trial.normal(*shape))


def _in_threads(count: int, work: Callable[[int], Tensor]) -> list[Tensor]:
    def called(index: int) -> Tensor:
        with torch.no_grad():
            return work(index)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(called, range(4 * count)))


def _near(trial: Trial, got: Sequence[Tensor], wanted: Sequence[Tensor], check: str, detail: str) -> None:
    same = all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(got, wanted, strict=True))
    trial.require(same, Status.FAIL_MISMATCH, check, detail)


def _one_program(trial: Trial, width: int) -> None:
    twin = _warm(trial, 4, 16)
    inputs = [trial.normal(4, 16) for _ in range(4 * width)]
    got = _in_threads(width, lambda index: twin.alone(inputs[index]))
    with torch.no_grad():
        wanted = [twin.eager(x) for x in inputs]
    _near(trial, got, wanted, "threads", f"{width} threads that share a program disturb each other")


@check(Level.L4, cost=1)
def one_program_in_two_threads(trial: Trial) -> None:
    _one_program(trial, 2)


@check(Level.L4, cost=1)
def one_program_in_eight_threads(trial: Trial) -> None:
    _one_program(trial, 8)


@check(Level.L4, cost=1)
def a_program_for_each_thread(trial: Trial) -> None:
    twins = [_warm(trial, 4, 16) for _ in range(3)]
    inputs = [trial.normal(4, 16) for _ in range(12)]
    got = _in_threads(3, lambda index: twins[index % 3].alone(inputs[index]))
    with torch.no_grad():
        wanted = [twins[index % 3].eager(x) for index, x in enumerate(inputs)]
    _near(trial, got, wanted, "threads", "programs in different threads disturb each other")


@check(Level.L4, cost=2)
def programs_compiled_at_once(trial: Trial) -> None:
    modules = [trial.made(_Mlp, 8 + index) for index in range(4)]
    inputs = [trial.normal(3, 8 + index) for index in range(4)]
    name = trial.subject.name
    programs = [fairlead.compile(copy.deepcopy(m), backend=name, fallback=("eager",)) for m in modules]

    def work(index: int) -> Tensor:
        result: Tensor = programs[index % 4](inputs[index % 4])
        return result

    with attributed():
        got = _in_threads(4, work)
    with torch.no_grad():
        wanted = [modules[index % 4](inputs[index % 4]) for index in range(16)]
    _near(trial, got, wanted, "threads", "programs compiled in four threads at once are wrong")
    _warm(trial, 4, 16)


@check(Level.L4)
def a_program_called_within_another(trial: Trial) -> None:
    inner = _warm(trial, 4, 16)

    def called(x: Tensor) -> Any:
        return inner.compiled(x)

    # This function alone: what it calls is compiled, and would be run by torch otherwise.
    within: Any = torch._dynamo.disable(called, recursive=False)  # type: ignore[no-untyped-call]

    class Outer(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return torch.relu(x) + within(x * 2)

    outer = fairlead.compile(Outer(), backend=trial.subject.name, fallback=("eager",))
    for _ in range(2):
        x = trial.normal(4, 16)
        with torch.no_grad():
            with attributed():
                got = outer(x)
            _near(trial, [got], [x.relu() + inner.eager(x * 2)], "re-entrancy", "a program in a program is wrong")


@check(Level.L4, cost=1)
def calls_after_many_errors(trial: Trial) -> None:
    twin = _warm(trial, 4, 16)
    for width in (3, 7, 15, 17, 3, 7):
        with contextlib.suppress(Exception):  # torch refuses to capture it
            twin.compiled(trial.normal(4, width))
    twin(trial.normal(4, 16))


@check(Level.L4, cost=1)
def twenty_calls_give_the_same_bits(trial: Trial) -> None:
    twin = _warm(trial, 32, 16)
    x = trial.normal(32, 16)
    with torch.no_grad():
        first, *others = [twin.alone(x).clone() for _ in range(20)]
    same = all(torch.equal(first, other) for other in others)
    trial.require(same, Status.FAIL_NONDETERMINISM, "same-bits", "one of twenty equal calls gives other bits")


@check(Level.L4, cost=1)
def a_hundred_results_are_kept(trial: Trial) -> None:
    twin = _warm(trial, 4, 16)
    inputs = [trial.normal(4, 16) for _ in range(100)]
    with torch.no_grad():
        got, wanted = [twin.alone(x) for x in inputs], [twin.eager(x) for x in inputs]
    _near(trial, got, wanted, "results-kept", "of a hundred results kept, some were overwritten")


@check(Level.L4, cost=2)
def five_hundred_calls_leave_no_tensors(trial: Trial) -> None:
    twin = _warm(trial, 4, 16)
    before = _tensors()
    _call(trial, twin, 500, 4, 16)
    grown = _tensors() - before
    trial.require(grown < 50, Status.FAIL_LEAK, "tensors", f"500 calls left {grown} tensors")


@check(Level.L4, cost=4)
def five_hundred_calls_leave_no_memory(trial: Trial) -> None:
    twin = _warm(trial, 1024, 16)
    _call(trial, twin, 100, 1024, 16)
    before = _held(trial.device)
    _call(trial, twin, 500, 1024, 16)
    grown = (_held(trial.device) - before) / _MEBIBYTE
    # An input and a result are 128 KiB: to keep either is 31 MiB or more.
    trial.require(grown < 24, Status.FAIL_LEAK, "resident-memory", f"500 calls left {grown:.0f} MiB")


@check(Level.L4, cost=1)
def a_hundred_calls_leave_no_threads_and_no_files(trial: Trial) -> None:
    twin = _warm(trial, 4, 16)
    _call(trial, twin, 20, 4, 16)  # a pool of threads may fill up first
    process = psutil.Process()
    threads, files = process.num_threads(), process.num_fds()
    _call(trial, twin, 100, 4, 16)
    grown = process.num_threads() - threads
    trial.require(grown < 20, Status.FAIL_LEAK, "threads", f"100 calls left {grown} threads")
    grown = process.num_fds() - files
    trial.require(grown < 20, Status.FAIL_LEAK, "files", f"100 calls left {grown} files open")


@check(Level.L4)
def inputs_and_results_are_let_go(trial: Trial) -> None:
    twin = _warm(trial, 4, 16)
    x = trial.normal(4, 16)
    with torch.no_grad():
        y = twin.alone(x)
    alive = [weakref.ref(x), weakref.ref(y)]
    del x, y
    with torch.no_grad():
        twin.alone(trial.normal(4, 16))
    gc.collect()
    kept = [name for name, reference in zip(("input", "result"), alive, strict=True) if reference() is not None]
    trial.require(not kept, Status.FAIL_LEAK, "tensors", f"the {' and the '.join(kept)} of an earlier call is kept")


@check(Level.L4)
def a_model_is_let_go(trial: Trial) -> None:
    module = trial.made(_Mlp)
    program = fairlead.compile(module, backend=trial.subject.name, fallback=("eager",))
    with torch.no_grad(), attributed():
        program(trial.normal(4, 16))
    weight = module.get_parameter("up.weight")
    alive = weakref.ref(weight)
    memory: Any = StorageWeakRef(weight.untyped_storage())  # type: ignore[no-untyped-call]
    del module, program, weight
    torch._dynamo.reset()
    gc.collect()
    gone = alive() is None and memory.expired()
    trial.require(gone, Status.FAIL_LEAK, "weights", "the weights outlive the model and its program")
    _warm(trial, 4, 16)


@check(Level.L4, needs=("training",), cost=2)
def a_hundred_steps_leave_no_tensors(trial: Trial) -> None:
    twin = trial.compile(trial.made(_Mlp))
    twin.gradients(trial.normal(4, 16))

    def step() -> None:
        with attributed():
            twin.compiled(trial.normal(4, 16)).square().sum().backward()
        twin.program.zero_grad()

    step()
    before = _tensors()
    for _ in range(100):
        step()
    grown = _tensors() - before
    trial.require(grown < 20, Status.FAIL_LEAK, "tensors", f"100 steps of training left {grown} tensors")


@check(Level.L4, cost=6)
def many_programs_one_after_another(trial: Trial) -> None:
    for width in range(12):
        torch._dynamo.reset()
        twin = trial.compile(trial.made(_Mlp, 4 + width))
        twin(trial.normal(3, 4 + width))


def _tensors() -> int:
    gc.collect()
    # Not isinstance, which asks objects for their class: some that are deprecated warn when they are asked anything.
    return sum(issubclass(type(item), Tensor) for item in gc.get_objects())


def _held(device: str) -> int:
    """Bytes that the process has, of the machine's memory and of the device's.

    What was freed before goes back to the system first, or what is kept from now on would fill that, unseen.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
    return int(psutil.Process().memory_info().rss) + memory_held(device)


_CHECKS = checks_of(globals())


def cases() -> Sequence[Case]:
    return cases_of("robustness", _CHECKS)


def run(case: Case, subject: Subject, seen: Observation) -> None:
    run_check(_CHECKS[case.subject], case, subject, seen)
