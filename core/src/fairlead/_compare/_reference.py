"""What a model ought to give: its weights and inputs on disk, and for each case eager's result beside that of float64.

All workers of one comparison share a folder, which the first one writes: a factory that draws other random numbers in
each process does no harm.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch

from fairlead._accuracy import Case, Tensors, in_float64, moved
from fairlead._compare._step import results
from fairlead._models import Model, next_sizes
from fairlead.errors import ArgumentError

__all__ = ["State", "case_of", "example", "read_case", "with_dynamic", "write_cases"]

SHAKES = 2
"""How often eager is run with rounding added."""

SHAKES_OF_GRADIENTS = 16
"""How often in training.

A gradient jumps where a number before a ReLU, or the two largest of a pooling window, are a rounding apart; whoever
rounds otherwise gives the other side, and few runs do not show it.
"""

RANDOM = 1e-3
"""Two runs of a deterministic model differ by less than this of its largest value; dropout makes it about one."""


class State:
    """The weights and inputs that all workers share, as files in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._weights = folder / "weights.pt"
        self._inputs = folder / "inputs.pt"

    @property
    def exists(self) -> bool:
        return self._inputs.exists()

    def save(self, model: Model) -> None:
        """Write what ``model`` has."""
        torch.save({name: tensor.detach() for name, tensor in _weights(model).items()}, self._weights)
        torch.save(model.tensors, self._inputs)

    def restore(self, model: Model) -> None:
        """Put the weights and buffers back. Only what differs is written: compilers watch version counters."""
        saved = _read(self._weights)
        with torch.no_grad():
            for name, tensor in _weights(model).items():
                if not torch.equal(tensor, saved[name].to(tensor.dtype)):
                    tensor.copy_(saved[name])

    def adopt(self, model: Model) -> Model:
        """``model`` with the weights and inputs that were saved."""
        self.restore(model)
        args, kwargs = model.inputs(_read(self._inputs))
        return replace(model, args=args, kwargs=kwargs)


def _weights(model: Model) -> Tensors:
    return {**dict(model.module.named_parameters()), **dict(model.module.named_buffers())}


def _read(path: Path) -> Tensors:
    return cast(Tensors, torch.load(path, weights_only=True))


def with_dynamic(model: Model) -> Model:
    """The model with its dynamic dimensions; one that declares none has its batch, dimension 0 of every input."""
    if model.dynamic:
        return model
    lengths = {tensor.shape[0] if tensor.dim() else None for tensor in model.tensors.values()}
    if len(lengths) != 1 or None in lengths:
        raise ArgumentError(
            f"{model.name!r} does not say which dimensions are dynamic, and its inputs share no batch",
            where=f"their first dimensions: {lengths}",
            next='return (module, inputs, dynamic) from the factory, dynamic as {"0": {0: "batch"}}',
        )
    return replace(model, dynamic={name: {0: "batch"} for name in model.tensors})


def example(model: Model, dynamic: bool) -> Tensors:
    """The inputs of the first call."""
    return (
        model.resized({name: next_sizes(size)[0] for name, size in model.sizes().items()}) if dynamic else model.tensors
    )


def write_cases(model: Model, state: State, folder: Path, *, training: bool, dynamic: bool) -> tuple[str, ...]:
    """Run every case in eager and in float64, write them down and return their labels, in order.

    Raises `ArgumentError` where eager fails on the example, or gives something else the second time.
    """
    _check_repeats(model, state, example(model, dynamic), training)
    wide = _widened(model, state)
    labels: list[str] = []
    for label, inputs in _cases(model, dynamic):
        try:
            eager = _fresh(model, state, inputs, training)
        except Exception:
            continue  # An input made of the example's need not make sense to the model.
        case = _case(model, wide, state, inputs, eager, training)
        torch.save(vars(case), folder / f"case-{len(labels)}.pt")
        labels.append(label)
    state.restore(model)
    return tuple(labels)


def case_of(model: Model, state: State, training: bool) -> Case:
    """What the model's own inputs ought to give. Raises what `write_cases` raises; weights are as they were saved."""
    _check_repeats(model, state, model.tensors, training)
    eager = _fresh(model, state, model.tensors, training)
    case = _case(model, _widened(model, state), state, model.tensors, eager, training)
    state.restore(model)
    return case


def _case(model: Model, wide: Model | None, state: State, inputs: Tensors, eager: Tensors, training: bool) -> Case:
    exact = _exact(wide, state, inputs, training) if wide else None
    return Case(inputs, eager, exact, _shaken(model, state, inputs, training, exact or eager))


def read_case(folder: Path, index: int) -> Case:
    """One of those that `write_cases` wrote, by its position."""
    return Case(**torch.load(folder / f"case-{index}.pt", weights_only=True))


def _cases(model: Model, dynamic: bool) -> Iterator[tuple[str, Tensors]]:
    if not dynamic:
        yield "example", model.tensors
        # Other values of the same shapes, in the range that the model expects, show what was taken for a constant.
        flipped = {name: tensor.flip(-1) if tensor.dim() else tensor for name, tensor in model.tensors.items()}
        yield "flipped", flipped
        return
    sizes = {name: next_sizes(size) for name, size in model.sizes().items()}
    for turn in range(3):
        chosen = {name: three[turn] for name, three in sizes.items()}
        yield ", ".join(f"{name} {size}" for name, size in chosen.items()), model.resized(chosen)


def _fresh(model: Model, state: State, inputs: Tensors, training: bool) -> Tensors:
    state.restore(model)
    return _copies(results(model, model.module, inputs, training))


def _copies(tensors: Tensors) -> Tensors:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def _shaken(model: Model, state: State, inputs: Tensors, training: bool, exact: Tensors) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    furthest: dict[str, float] = {}
    for _ in range(SHAKES_OF_GRADIENTS if training else SHAKES):
        state.restore(model)
        with torch.no_grad():
            for parameter in model.module.parameters():
                parameter.copy_(moved(parameter, generator))
        others = {name: moved(tensor, generator) for name, tensor in inputs.items()}
        for name, tensor in results(model, model.module, others, training).items():
            if tensor.is_floating_point() and tensor.numel():
                distance = (tensor.detach().double() - exact[name].double()).abs().nan_to_num(posinf=0.0).max()
                furthest[name] = max(furthest.get(name, 0.0), float(distance))
    return furthest


def _check_repeats(model: Model, state: State, inputs: Tensors, training: bool) -> None:
    try:
        once, again = (_fresh(model, state, inputs, training) for _ in range(2))
    except Exception as error:
        raise ArgumentError(
            f"the model {model.name!r} fails in plain PyTorch: {type(error).__name__}: {error}",
            where=f"calling it with {', '.join(f'{key} {list(value.shape)}' for key, value in inputs.items())}",
            next="make model(*inputs) work first" + ("; --train also calls loss.backward()" if training else ""),
        ) from error
    for name, tensor in once.items():
        scale = tensor.abs().max() if tensor.numel() and not tensor.dtype.is_complex else 1
        if tensor.is_floating_point() and ((tensor - again[name]).abs() > RANDOM * scale).any():
            raise ArgumentError(
                f"the model {model.name!r} gives another result each time: {name} differs",
                where="two calls in plain PyTorch with the same weights and inputs",
                next="turn dropout and other random numbers off in the factory",
            )


def _widened(model: Model, state: State) -> Model | None:
    state.restore(model)
    with contextlib.suppress(Exception):
        return replace(model, module=copy.deepcopy(model.module).double())
    return None


def _exact(wide: Model, state: State, inputs: Tensors, training: bool) -> Tensors | None:
    """The results in float64, or None for a model that insists on another type."""
    state.restore(wide)
    doubles = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    with contextlib.suppress(Exception), in_float64():
        return _copies(results(wide, wide.module, doubles, training))
    return None
