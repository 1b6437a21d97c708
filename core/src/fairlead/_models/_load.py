"""From a MODEL argument to a `Model`: one function for each form that the argument can have."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from fairlead._models._catalog import CATALOG, check_spec
from fairlead._models._fir import load_fir
from fairlead._models._model import Dynamic, Model
from fairlead._torch_types import TORCH_DTYPES
from fairlead.errors import ArgumentError, ModelNotFoundError
from fairlead.ir import DType

__all__ = ["load", "with_dtype"]

SHAPE = "return (module, inputs), (module, inputs, dynamic), or a module with example_inputs"


def load(spec: str, *, training: bool = False, seed: int = 0) -> Model:
    """The model that ``spec`` names, with random weights drawn after ``torch.manual_seed(seed)``.

    With ``training`` the module is in train mode and bundled models get labels, so that their output has a ``loss``.
    Raises `ModelNotFoundError` for a name that leads nowhere and `ArgumentError` for a factory that does not return a
    model.
    """
    check_spec(spec)
    torch.manual_seed(seed)
    if spec in CATALOG:
        model = _bundled(spec, training)
    else:
        model = load_fir(spec) if spec.endswith(".fir") else _from_factory(spec)
    model.module.train(training)
    return model


def _bundled(name: str, training: bool) -> Model:
    # transformers must not look for a newer configuration: nothing is downloaded, and nothing waits for a network.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if name == "mlp":
        from fairlead._models._mlp import mlp

        return mlp()
    from fairlead._models import _architectures

    return _architectures.BUILDERS[name](training)


def _from_factory(spec: str) -> Model:
    source, _, attribute = spec.rpartition(":")
    factory = _attribute(_module(source, spec), attribute, spec)
    if not callable(factory):
        raise _bad_factory(spec, f"{attribute!r} is a {type(factory).__name__}, not a function")
    try:
        made = factory()
    except Exception as error:
        raise ArgumentError(
            f"the factory {spec!r} raised {type(error).__name__}: {error}",
            where=f"calling {attribute}() without arguments",
            next="make it run in a plain Python session first",
        ) from error
    return _model(spec, made)


def _module(source: str, spec: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return _module_of_file(Path(source)) if source.endswith(".py") else importlib.import_module(source)
    except Exception as error:
        raise ModelNotFoundError(
            f"the module of {spec!r} does not import: {type(error).__name__}: {error}",
            where=f"import {source} (the search path begins with {folder})",
            next="give package.module:factory or path/to/file.py:factory",
        ) from error


def _module_of_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Dynamo looks functions up through sys.modules.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, attribute: str, spec: str) -> Any:
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        raise ModelNotFoundError(
            f"{module.__name__!r} has no {attribute!r}",
            where=f"MODEL {spec!r}, {getattr(module, '__file__', 'a built-in module')}",
            next="name a function of that module which takes no arguments",
        ) from error


def _model(spec: str, made: Any) -> Model:
    module, inputs, dynamic = _parts(spec, made)
    if not isinstance(module, torch.nn.Module):
        raise _bad_factory(spec, f"the module is a {type(module).__name__}, not a torch.nn.Module")
    args, kwargs = _arguments(spec, inputs)
    model = Model(spec, module, args, kwargs, dynamic)
    _check_dynamic(model)
    return model


def _parts(spec: str, made: Any) -> tuple[Any, Any, Dynamic]:
    if hasattr(made, "example_inputs"):
        return made, made.example_inputs, {}
    match made:
        case (module, inputs):
            return module, inputs, {}
        case (module, inputs, dynamic):
            return module, inputs, {str(name): dict(dims) for name, dims in dynamic.items()}
    raise _bad_factory(spec, f"it returned a {type(made).__name__}")


def _arguments(spec: str, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return tuple(inputs), {}
    raise _bad_factory(spec, f"the inputs are a {type(inputs).__name__}, not a mapping, a sequence or a tensor")


def _check_dynamic(model: Model) -> None:
    tensors = model.tensors
    for name, dims in model.dynamic.items():
        if name not in tensors or any(dim not in range(tensors[name].dim()) for dim in dims):
            raise ArgumentError(
                f"{model.name!r} declares dynamic dimensions {sorted(dims)} of {name!r}, which has none of them",
                where=f"its tensors: {', '.join(f'{key} {list(value.shape)}' for key, value in tensors.items())}",
                next='dynamic is {argument: {dimension: size name}}, as {"0": {0: "batch"}}',
            )


def _bad_factory(spec: str, why: str) -> ArgumentError:
    return ArgumentError(f"the factory {spec!r} does not give a model: {why}", where="MODEL", next=f"{SHAPE}")


def with_dtype(model: Model, dtype: DType) -> Model:
    """The model with its floating-point weights and inputs in another type."""
    wanted = TORCH_DTYPES[dtype]
    args, kwargs = model.inputs({n: t.to(wanted) if t.is_floating_point() else t for n, t in model.tensors.items()})
    return replace(model, module=model.module.to(wanted), args=args, kwargs=kwargs)
