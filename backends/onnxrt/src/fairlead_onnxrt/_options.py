"""The options of the backend."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlead.backend import Options
from fairlead.errors import OptionValueError
from fairlead_onnxrt._devices import CPU, CUDA, has_cuda

__all__ = ["OnnxRuntimeOptions"]


class OnnxRuntimeOptions(Options, frozen=True, kw_only=True):
    """What a caller may set; the defaults are the fastest that are exact.

    ``providers``: execution providers, in order of preference; none stands for those of the device that the tensors
    are on. ``provider_options``: for each of them, by name, its own options, passed on as they are. ``precision``:
    ``tf32`` rounds the operands of products and convolutions of float32 on CUDA to 10 bits of fraction.
    ``graph_optimization``: how far ONNX Runtime rewrites the graph. ``intra_op_threads``: 0 follows
    ``torch.get_num_threads()``.
    ``inter_op_threads``: so many ops run at once where they do not depend on each other. ``spinning``: whether idle
    threads burn time between the ops of a call, to wake up sooner; they never do after it. ``deterministic``: only
    kernels that give the same bits at each call. ``memory_arena``: memory is kept from call to call.
    ``memory_pattern``: where the shapes are those of an earlier call, memory is taken in one piece.
    ``disabled_optimizers``: names of ONNX Runtime's rewrites to leave out. ``session_config``: entries of its session
    configuration, passed on as they are.

    Raises `fairlead.errors.OptionValueError` for a provider that the installed build of ONNX Runtime does not have, and
    for options of one that is not among ``providers``.
    """

    providers: tuple[str, ...] = ()
    precision: Literal["f32", "tf32"] = "f32"
    provider_options: dict[str, dict[str, str]] = {}
    graph_optimization: Literal["disabled", "basic", "extended", "all"] = "all"
    intra_op_threads: Annotated[int, msgspec.Meta(ge=0)] = 0
    inter_op_threads: Annotated[int, msgspec.Meta(ge=1)] = 1
    spinning: bool = True
    deterministic: bool = False
    memory_arena: bool = True
    memory_pattern: bool = True
    disabled_optimizers: tuple[str, ...] = ("SkipLayerNormFusion",)
    session_config: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.providers not in ((), (CPU,)):
            _check_providers(self.providers)
        if not self.provider_options:
            return
        providers = self.providers or ((CUDA, CPU) if has_cuda() else (CPU,))
        if foreign := [name for name in self.provider_options if name not in providers]:
            raise OptionValueError(
                f"option 'provider_options' is for {foreign[0]!r}, which is not among the providers",
                where="backend 'onnxrt'",
                next=f"add it to providers, now {', '.join(providers)}, or leave its options out",
            )


def _check_providers(providers: tuple[str, ...]) -> None:
    import onnxruntime

    available = onnxruntime.get_available_providers()
    if missing := [name for name in providers if name not in available]:
        raise OptionValueError(
            f"option 'providers' has {missing[0]!r}, which this build of ONNX Runtime does not have",
            where=f"backend 'onnxrt', onnxruntime {onnxruntime.__version__}",
            next=f"pass some of {', '.join(available)}, or install a build of ONNX Runtime that has it",
        )
