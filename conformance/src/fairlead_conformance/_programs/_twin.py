"""A program compiled, beside itself in eager and in eager in float64."""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

import fairlead
from fairlead.placement import Placement
from fairlead_conformance._device import generators
from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._programs._agreement import agree
from fairlead_conformance._programs._layout import same_layout, same_memory, same_structure, tensors
from fairlead_conformance._programs._raised import attributed
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject
from fairlead_conformance._witness import changed, state

__all__ = ["Twin"]

_TURNS = 8
"""How often what a gradient is computed from is moved to see how far it goes: of one gradient, moves may cancel too."""

_Context = Callable[[], contextlib.AbstractContextManager[Any]]


class _Run(NamedTuple):
    """One call: what was passed, what came back, and the states of torch's generators afterwards."""

    program: Callable[..., Any]
    given: Any
    result: Any
    generators: tuple[torch.Tensor, ...]


class Twin:
    """A program that is called in step with eager, every call checked in full.

    Each gets its own copy of the arguments. Compared are the result's structure, dtypes, shapes, strides,
    ``requires_grad``, memory and values; what became of the arguments and of the module's weights and buffers; torch's
    generators, and the state of the process. Results of earlier calls are kept, and have to stay what they were.

    ``within``: the context of every call. ``exact``: whether float64 says what is right; otherwise eager does.
    ``draws``: random numbers are drawn, and a backend that draws its own may have others. ``fullgraph`` and ``dynamic``
    are those of `fairlead.compile`.
    """

    def __init__(
        self,
        program: Callable[..., Any],
        subject: Subject,
        seen: Observation,
        *,
        salt: int = 0,
        within: _Context = torch.no_grad,
        exact: bool = True,
        draws: bool = False,
        fullgraph: bool = False,
        dynamic: bool | None = None,
    ) -> None:
        self.program: Any = program
        self.eager: Any = copy.deepcopy(program)
        self.exact: Any = _doubled(program) if exact and not draws else None
        self.compiled: Any = fairlead.compile(
            program, backend=subject.name, fallback=("eager",), fullgraph=fullgraph, dynamic=dynamic, benchmark=False
        )
        self.has_own_numbers = draws and subject.capabilities.rng
        self._device = subject.place
        self._within = within
        self._salt = salt
        self._seen = seen
        self._kept: list[tuple[Any, Any, Any, Any]] = []

    @property
    def placement(self) -> Placement:
        """Where the nodes of all graphs of the compiled program went."""
        placement: Placement = self.compiled.fairlead.placement
        return placement

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call all of them and compare; returns the compiled program's result."""
        return self._forward(self._within, args, named)[0].result

    def alone(self, *args: Any, **named: Any) -> Any:
        """Call the compiled program and compare nothing; what it raises is the backend's failure."""
        with attributed():
            return self.compiled(*args, **named)

    def gradients(self, *args: Any, **named: Any) -> Any:
        """As a call, with gradients of the result, arguments and weights; returns the compiled program's result.

        Gradients accumulate in the weights, as in eager.
        """
        runs = self._forward(lambda: _gradients_within(self._within), args, named)
        for run in runs:
            with attributed() if run is runs[0] else contextlib.nullcontext():
                torch.autograd.backward(_weighted(run.result, self._salt))
        eager, exact = runs[1], runs[2] if len(runs) > 2 else None
        spreads = functools.cache(lambda: self._spreads(args, named))
        leaves = zip(*(_leaves(run) for run in (runs[0], eager, exact or eager)), strict=True)
        for index, (got, wanted, true) in enumerate(leaves):
            what = f"leaf {index}"
            if (got.grad is None) != (wanted.grad is None):  # autograd knows who has one, and no backend
                raise RuntimeError(f"{what} has {'no' if got.grad is None else 'a'} gradient, unlike in eager")
            if got.grad is not None and wanted.grad is not None and not self.has_own_numbers:
                same_layout(got.grad, wanted.grad, f"the gradient of {what}")
                agree(
                    got.grad, wanted.grad, true.grad if exact else None, f"the gradient of {what}",
                    self._seen, Status.FAIL_GRAD, functools.partial(_item, spreads, index) if exact else None,
                )  # fmt: skip
        return runs[0].result

    def _spreads(self, args: Any, named: Any) -> list[float]:
        """How far each leaf's gradient in float64 moves where arguments, weights and buffers move by a rounding."""
        still = self._exact_gradients(args, named, None)
        moved = [self._exact_gradients(args, named, turn) for turn in range(_TURNS)]
        return [0.0 if own is None else _furthest(own, each) for own, *each in zip(still, *moved, strict=True)]

    def _exact_gradients(self, args: Any, named: Any, turn: int | None) -> list[torch.Tensor | None]:
        """The leaves' gradients in float64; ``turn`` decides how what they are computed from is moved."""
        narrow = _Run(self.eager, (args, named), None, ())
        wide = _Run(copy.deepcopy(self.exact), _wide(copy.deepcopy((args, named))), None, ())
        if turn is not None:
            _move(_owned(narrow), _owned(wide), turn)
        for leaf in _leaves(wide):
            leaf.grad = None
        ran = self._run(wide.program, lambda: _gradients_within(self._within), wide.given)
        torch.autograd.backward(_weighted(ran.result, self._salt))
        return [leaf.grad for leaf in _leaves(wide)]

    def each(self, change: Callable[[Any], Any]) -> None:
        """Do the same to the compiled program's module, to eager's and to that in float64, without gradients."""
        with torch.no_grad():
            for module in (self.program, self.eager, self.exact):
                if module is not None:
                    change(module)

    def check_kept(self) -> None:
        """Raise `Failed` where the result of an earlier call changed, unless eager's did too."""
        for got, was, eager, eager_was in self._kept:
            if _equal(eager, eager_was) and not _equal(got, was):
                raise Failed(Status.FAIL_ALIAS, "first-result-kept", "the result of an earlier call was overwritten")

    def _forward(self, within: _Context, args: Any, named: Any) -> list[_Run]:
        eager = self._run(self.eager, within, copy.deepcopy((args, named)))
        given, before, modules = copy.deepcopy((args, named)), state(random_numbers=False), len(sys.modules)
        with attributed():
            got = self._run(self.compiled, within, given)
        imported = len(sys.modules) > modules  # by a compiler, at the first call
        if differing := changed(before, state(random_numbers=False), imported=imported):
            raise Failed(Status.FAIL_STATE, "state", f"the call changed: {differing}")
        if not all(map(torch.equal, got.generators, eager.generators)) and not self.has_own_numbers:
            raise Failed(Status.FAIL_RNG, "generator", "torch's generator is not where eager leaves it")
        if self.has_own_numbers:
            self._check_seed(got, within, copy.deepcopy((args, named)))
        runs = [got._replace(program=self.program), eager]
        if self.exact is not None:
            runs.append(self._run(self.exact, within, _wide(copy.deepcopy((args, named)))))
        self._compare(*runs)
        return runs

    def _check_seed(self, got: _Run, within: _Context, given: Any) -> None:
        """Whatever numbers the backend draws, the same seed gives the same."""
        with attributed():
            again = self._run(self.compiled, within, given)
        for index, (a, b) in enumerate(zip(tensors(got.result), tensors(again.result), strict=True)):
            agree(b, a, None, f"result {index} with the same seed", self._seen, Status.FAIL_RNG)

    def _run(self, program: Callable[..., Any], within: _Context, given: Any) -> _Run:
        torch.manual_seed(self._salt + len(self._kept))
        with within():
            result = program(*given[0], **given[1])
        return _Run(program, given, result, generators(self._device))

    def _compare(self, got: _Run, eager: _Run, exact: _Run | None = None) -> None:
        same_structure(got.result, eager.result)
        mine, theirs = [*_owned(got), *tensors(got.result)], [*_owned(eager), *tensors(eager.result)]
        same_memory(mine, theirs, len(_owned(got)))
        true = [*_owned(exact), *tensors(exact.result)] if exact else [None] * len(mine)
        for index, (a, b, c) in enumerate(zip(mine, theirs, true, strict=True)):
            is_result = index >= len(_owned(got))
            what = f"result {index - len(_owned(got))}" if is_result else f"input or weight {index}"
            same_layout(a, b, what)
            if not self.has_own_numbers:
                agree(a, b, c, what, self._seen, Status.FAIL_MISMATCH if is_result else Status.FAIL_MUTATION)
        self.check_kept()
        self._kept.append((got.result, _copied(got.result), eager.result, _copied(eager.result)))


def _state(program: Any) -> list[torch.Tensor]:
    return [*program.parameters(), *program.buffers()] if isinstance(program, torch.nn.Module) else []


def _owned(run: _Run) -> list[torch.Tensor]:
    """What the caller has: arguments, weights and buffers."""
    return [*tensors(run.given), *_state(run.program)]


def _leaves(run: _Run) -> list[torch.Tensor]:
    return [t for t in _owned(run) if t.requires_grad]


def _move(narrow: list[torch.Tensor], wide: list[torch.Tensor], turn: int) -> None:
    """Move each element of what was widened by a rounding of what it was widened from, up or down."""
    generator = torch.Generator().manual_seed(turn)
    for origin, tensor in zip(narrow, wide, strict=True):
        if origin.is_floating_point():
            signs = torch.randint(2, tensor.shape, generator=generator).to(tensor) * 2 - 1
            tensor.detach().mul_(1 + torch.finfo(origin.dtype).eps * signs)


def _furthest(own: torch.Tensor, others: list[torch.Tensor | None]) -> float:
    return max((float((other - own).abs().max()) for other in others if other is not None and own.numel()), default=0.0)


def _item(items: Callable[[], list[float]], index: int) -> float:
    return items()[index]


@contextlib.contextmanager
def _gradients_within(outer: _Context) -> Iterator[None]:
    with outer(), torch.enable_grad():
        yield


def _weighted(result: Any, salt: int) -> torch.Tensor:
    """A sum over everything that has gradients, in which no two elements count alike."""
    generator = torch.Generator().manual_seed(salt)
    parts = [t for t in tensors(result) if t.requires_grad]
    return sum(((t * torch.randn(t.shape, generator=generator).to(t)).sum() for t in parts), torch.zeros(()))


def _doubled(program: Callable[..., Any]) -> Callable[..., Any]:
    return copy.deepcopy(program).double() if isinstance(program, torch.nn.Module) else program


def _wide(items: Any) -> Any:
    def widened(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf
        return leaf.detach().double().requires_grad_(leaf.requires_grad)

    return pytree.tree_map(widened, items)


def _copied(items: Any) -> list[torch.Tensor]:
    return [t.detach().clone() for t in tensors(items)]


def _equal(items: Any, was: list[torch.Tensor]) -> bool:
    return all(_bits_equal(t.detach(), old) for t, old in zip(tensors(items), was, strict=True))


def _bits_equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | ((a != a) & (b != b))).all())
