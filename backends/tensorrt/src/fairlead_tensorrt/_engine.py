"""Engines, built here for a device that need not be here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import CompileError
from fairlead.ir import Graph
from fairlead_onnx import ModelFile, lower
from fairlead_tensorrt._account import Layer, account
from fairlead_tensorrt._options import TensorRTOptions
from fairlead_tensorrt._sdk import Built, Range, Sdk, Settings, TensorRTError, sdk_of
from fairlead_tensorrt._sizes import Size, given_sizes, ranges
from fairlead_tensorrt._target import TARGET

if TYPE_CHECKING:
    import torch

__all__ = ["COMPUTE_CAPABILITIES", "Engine", "build", "build_plan", "model_file"]

COMPUTE_CAPABILITIES = ("8.9", "12.0")
"""What `build` makes engines for where it is not told."""


class Engine(msgspec.Struct, frozen=True):
    """An engine that was built, and what its builder says of it. Nothing of it has run.

    ``plan``: the engine as TensorRT's bytes. ``flavour``, ``version``: of the SDK that built it, and that alone reads
    it. ``layers``: its steps, after fusion. ``activations``, ``weights``: memory, in bytes. ``ranges``: by input of the
    graph, the sizes, or the number, that a dynamic one may have. ``refittable``: whether weights may be given anew
    without building again. ``named``: inputs of the graph that were baked, and that the network knows by name, as
    refitting needs.
    """

    plan: bytes
    flavour: str
    version: str
    compute_capabilities: tuple[str, ...]
    layers: tuple[Layer, ...]
    activations: int
    weights: int
    ranges: dict[int, Range]
    refittable: bool
    named: tuple[int, ...]

    @property
    def precisions(self) -> dict[str, int]:
        """How many layers read or write each element type, by TensorRT's names of them."""
        names = sorted({dtype for layer in self.layers for dtype in layer.dtypes})
        return {name: sum(name in layer.dtypes for layer in self.layers) for name in names}


def build(
    graph: Graph,
    *,
    compute_capabilities: tuple[str, ...] = COMPUTE_CAPABILITIES,
    constants: Mapping[int, torch.Tensor] | None = None,
    options: TensorRTOptions | None = None,
    sizes: Mapping[str, tuple[int, int, int]] | None = None,
) -> Engine:
    """Build a graph for devices of these compute capabilities, with ``tensorrt_rtx``, on a machine without one.

    ``constants``: tensors to bake, by input of the graph, as `fairlead.ir.load` gives them. ``sizes``: smallest, usual
    and largest number of a symbol; others have the bounds of the graph, and 512 where there is none. Every node must be
    one that the backend's ``supports`` takes. Where there is no driver, the engine is not refittable: ``tensorrt_rtx``
    cannot build one that is (1.4 to 1.7). Raises `CompileError` with what TensorRT said.
    """
    options = options or TensorRTOptions()
    options = msgspec.structs.replace(options, compute_capabilities=compute_capabilities)
    constants = constants or {}
    try:
        sdk = sdk_of("tensorrt_rtx")
        file = model_file(graph, constants, options)
        found = given_sizes(graph, sizes or {})
        refit = refits(sdk, options)
        built = build_plan(sdk, graph, file, constants, options, found)
    except (TensorRTError, ValueError) as error:
        raise CompileError(
            f"graph {graph.name!r} makes no engine: {error}",
            where="fairlead_tensorrt.build",
            next="pip install tensorrt_rtx, or build fewer nodes: fairlead_tensorrt.backend.supports(node)",
        ) from error
    said = account(built.said)
    names = {name: i for i, name in enumerate(file.inputs) if name is not None}
    return Engine(
        plan=built.plan,
        flavour=sdk.name,
        version=sdk.version,
        compute_capabilities=compute_capabilities,
        layers=said.layers,
        activations=said.activations,
        weights=said.weights,
        ranges={names[name]: each for name, each in ranges(graph, _passed(file, constants), found).items()},
        refittable=refit,
        named=tuple(sorted(names[name] for name in built.named)),
    )


def model_file(graph: Graph, constants: Iterable[int], options: TensorRTOptions) -> ModelFile:
    """The graph lowered for TensorRT; the inputs that are constants are initializers outside of the file."""
    from fairlead_tensorrt._precision import narrow_products

    lowered = lower(graph, target=TARGET)
    lowered.externalize(constants)
    narrow_products(lowered.model, options.precision)
    return lowered.file()


def build_plan(
    sdk: Sdk,
    graph: Graph,
    file: ModelFile,
    constants: Mapping[int, torch.Tensor],
    options: TensorRTOptions,
    sizes: Mapping[str, Size],
    timing: bytes = b"",
) -> Built:
    """Build the file of a graph, over the tensors of ``constants``. Raises `TensorRTError`."""
    weights = {
        name: constants[i].detach().cpu().contiguous() for i in constants if (name := file.inputs[i]) is not None
    }
    how = Settings(
        tf32=options.precision == "tf32",
        refit=refits(sdk, options),
        compute_capabilities=options.compute_capabilities,
        workspace=options.workspace,
        optimization=options.optimization,
        timing=timing,
    )
    return sdk.build(file.model, weights, ranges(graph, _passed(file, constants), sizes), how)


def refits(sdk: Sdk, options: TensorRTOptions) -> bool:
    """Whether an engine is built to be refitted: where that is asked for, right in this release, and possible here."""
    import torch

    return options.weights == "refit" and sdk.refits_rightly and torch.cuda.device_count() > 0


def _passed(file: ModelFile, constants: Iterable[int]) -> list[str | None]:
    baked = set(constants)
    return [None if i in baked else name for i, name in enumerate(file.inputs)]
