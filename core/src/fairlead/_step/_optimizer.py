"""What a training step has to know of an optimizer: whose weights it updates, and how its update is traced."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from fairlead.errors import ArgumentError, StepError

__all__ = ["Updated", "update_of"]

_IMPLEMENTATIONS = ("foreach", "fused")
"""Options of optimizers that choose kernels for what the backend compiles."""


def update_of(optimizer: torch.optim.Optimizer) -> Callable[[torch.optim.Optimizer], Any]:
    """The optimizer's own step, without what torch wraps around it for eager mode.

    That is a profiler, hooks, a switch of gradients, and what learning rate schedulers count with. Raises
    `StepError` for one that calls the loss itself, as LBFGS does, or whose step was replaced.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ArgumentError(
            f"a {type(optimizer).__name__} is no optimizer",
            where="fairlead.compile_step",
            next="pass an object of a class of torch.optim, or of a subclass of torch.optim.Optimizer",
        )
    step: Any = inspect.unwrap(type(optimizer).step)
    closure = inspect.signature(step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise _refused(optimizer, "calls the loss several times in one step")
    if inspect.unwrap(getattr(optimizer.step, "__func__", optimizer.step)) is not step:
        raise _refused(optimizer, "has a step of its own in place of its class's")
    return step  # type: ignore[no-any-return]


class _Numbers:
    """The numbers of a group that schedules change, as tensors: the rate, and Adam's betas from their first change on.

    Of numbers that Dynamo makes symbols of, the IR has no word for what Adam does with them.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self._rate, *self._betas = (torch.zeros((), dtype=dtype, device="cpu") for _ in range(3))
        self._seen: object = None
        self._cycle = False

    def put(self, group: dict[str, Any], *, adam: bool) -> None:
        """Have them in the group in place of its numbers."""
        if isinstance(group.get("lr"), float):
            group["lr"] = self._rate.fill_(group["lr"])
        betas = group.get("betas")
        if not adam or not isinstance(betas, tuple) or not all(isinstance(b, float) for b in betas):
            return
        self._cycle = self._cycle or self._seen not in (None, betas)
        self._seen = betas
        if self._cycle:
            group["betas"] = tuple(mine.fill_(beta) for mine, beta in zip(self._betas, betas, strict=True))


class Updated:
    """The weights of an optimizer, and what stands for their gradients while the update is traced and guarded.

    The stand-ins of one dtype and device share their memory, which nothing reads.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._stand_ins: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._storages: dict[tuple[torch.dtype, torch.device], torch.UntypedStorage] = {}
        self._numbers: list[_Numbers] = []

    def weights(self) -> list[torch.Tensor]:
        """All weights that are trained, in the order of the groups."""
        return [p for group in self._optimizer.param_groups for p in group["params"] if p.requires_grad]

    def check(self, weights: list[torch.Tensor]) -> None:
        """Raise `StepError` where an optimizer or a weight has what one graph has no place for."""
        groups, optimizer = self._optimizer.param_groups, self._optimizer
        if not weights:
            raise _refused(optimizer, "has no weights that require gradients")
        if any(group.get("differentiable") for group in groups):
            raise _refused(optimizer, "is differentiable")
        hooks = (getattr(optimizer, f"_optimizer_step_{when}_hooks", None) for when in ("pre", "post"))
        if any(hooks):
            raise _refused(optimizer, "has hooks of its step")
        for weight in weights:
            if weight._backward_hooks or getattr(weight, "_post_accumulate_grad_hooks", None):
                raise _refused(optimizer, f"has a weight of shape {tuple(weight.shape)} with hooks of its gradient")

    @contextlib.contextmanager
    def traceable(self, weights: Sequence[torch.Tensor], used: tuple[int, ...]) -> Iterator[dict[int, int]]:
        """Have the optimizer as it is traced; the place of a weight by the identity of its gradient's stand-in.

        Learning rates are tensors, so that another one is no other program. The weights not in ``used`` have no
        gradient, as in eager mode where the loss does not depend on them; at the end none has.
        """
        groups = self._optimizer.param_groups
        changed = ("lr", "betas", *_IMPLEMENTATIONS)
        before = [{name: group[name] for name in changed if name in group} for group in groups]
        stand_ins = {}
        for weight in weights:
            weight.grad = None
        for place in used:
            weight = weights[place]
            weight.grad = self._stand_in(weight)
            stand_ins[id(weight.grad)] = place
        try:
            for group, numbers in zip(groups, self._numbers_for(groups, weights), strict=True):
                numbers.put(group, adam=isinstance(self._optimizer, torch.optim.Adam))
                group.update({name: False for name in _IMPLEMENTATIONS if group.get(name)})
            self._initialize(weights, used)
            yield stand_ins
        finally:
            for group, values in zip(groups, before, strict=True):
                group.update(values)
            for weight in weights:
                weight.grad = None

    def note_step(self) -> None:
        """Tell learning rate schedulers, which look for calls of the step that they have wrapped."""
        vars(self._optimizer)["_opt_called"] = True

    def _numbers_for(self, groups: Sequence[object], weights: Sequence[torch.Tensor]) -> list[_Numbers]:
        """Numbers for each group, of as many bits as the weights have."""
        is_double = any(w.dtype in (torch.float64, torch.complex128) for w in weights)
        while len(self._numbers) < len(groups):
            self._numbers.append(_Numbers(torch.float64 if is_double else torch.float32))
        return self._numbers

    def _stand_in(self, weight: torch.Tensor) -> torch.Tensor:
        known = self._stand_ins.get(id(weight))
        if known is None or known[0] is not weight or known[1].shape != weight.shape:
            known = self._stand_ins[id(weight)] = weight, self._made(weight)
        return known[1]

    def _made(self, weight: torch.Tensor) -> torch.Tensor:
        if type(weight) not in (torch.Tensor, torch.nn.Parameter) or weight.layout is not torch.strided:
            return torch.empty_like(weight, requires_grad=False)
        extent = 1 + sum((size - 1) * step for size, step in zip(weight.shape, weight.stride(), strict=True))
        key = weight.dtype, weight.device
        storage = self._storages.get(key)
        if storage is None or storage.nbytes() < extent * weight.itemsize:
            made = torch.empty(max(extent, 1), dtype=weight.dtype, device=weight.device)
            storage = self._storages[key] = made.untyped_storage()
        empty = torch.empty(0, dtype=weight.dtype, device=weight.device)
        return empty.set_(storage, 0, weight.shape, weight.stride())

    def _initialize(self, weights: Sequence[torch.Tensor], used: tuple[int, ...]) -> None:
        """Momenta of SGD, which torch makes of the first gradients, begin as zeros, of which follows the same.

        With dampening it does not; then the first step is a program of its own. Other optimizers make their state
        before anything is traced.
        """
        if type(self._optimizer) is not torch.optim.SGD:
            return
        trained = {id(weights[place]) for place in used}
        for group in self._optimizer.param_groups:
            if not group["momentum"] or group["dampening"]:
                continue
            for weight in group["params"]:
                state = self._optimizer.state[weight] if id(weight) in trained else None
                if state is not None and state.get("momentum_buffer") is None:
                    state["momentum_buffer"] = torch.zeros_like(weight, requires_grad=False)


def _refused(optimizer: torch.optim.Optimizer, why: str) -> StepError:
    return StepError(
        f"the optimizer {why}, which is no one graph",
        where=f"fairlead.compile_step, {type(optimizer).__name__}",
        next="train with fairlead.compile(model) and the optimizer's own step",
    )
