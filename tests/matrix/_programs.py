"""The programs of the golden corpus: architectures in evaluation and in training, and PyTorch's samples of its ops."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import architectures
import torch

__all__ = ["OPS", "Program", "models", "ops"]

MODELS = (
    "bert", "gpt2", "llama", "mixtral", "mamba", "t5", "whisper", "wav2vec2", "vit", "swin", "resnet", "convnext",
    "segformer", "detr", "clip",
)  # fmt: skip
"""Text, vision, audio, state space, mixture of experts, detection: see ``benchmarks/architectures.py``."""

DYNAMIC = ("bert",)
"""Captured once more, with a batch of any size."""

OPS = (
    "add", "sub", "mul", "div.floor_rounding", "remainder", "pow", "where", "clamp", "maximum", "sigmoid", "tanh",
    "erf", "exp", "log1p", "round", "isnan", "logical_and", "cumsum", "cumprod", "sum", "mean", "prod",
    "amax", "argmax", "any", "var", "std_mean", "logsumexp", "norm", "softmax", "log_softmax", "matmul", "addmm",
    "bmm", "baddbmm", "einsum", "nn.functional.linear", "nn.functional.layer_norm", "nn.functional.rms_norm",
    "nn.functional.group_norm", "nn.functional.batch_norm", "nn.functional.instance_norm", "nn.functional.gelu",
    "nn.functional.silu", "nn.functional.mish", "nn.functional.hardswish", "nn.functional.elu", "nn.functional.glu",
    "nn.functional.softplus", "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d",
    "nn.functional.conv_transpose2d", "nn.functional.max_pool2d", "nn.functional.avg_pool2d",
    "nn.functional.adaptive_avg_pool2d", "nn.functional.interpolate.bilinear", "nn.functional.interpolate.nearest",
    "nn.functional.grid_sample", "nn.functional.embedding", "nn.functional.cross_entropy", "nn.functional.mse_loss",
    "nn.functional.huber_loss", "nn.functional.binary_cross_entropy_with_logits",
    "nn.functional.pad.reflect", "nn.functional.pad.constant",
    "nn.functional.pixel_shuffle", "nn.functional.unfold", "cat", "stack", "split", "chunk", "unbind", "permute",
    "reshape", "expand", "squeeze", "flip", "roll", "rot90", "tril", "gather", "index_select", "scatter_add",
    "scatter_reduce.amax", "index_put", "index_add", "masked_fill", "take_along_dim", "topk", "sort", "kthvalue",
    "searchsorted", "bucketize", "as_strided", "diagonal", "diag_embed", "full_like", "linspace", "arange",
    "view_as_complex", "fft.rfft", "fft.ifft2", "linalg.inv_ex", "linalg.cholesky_ex", "linalg.vector_norm", "cdist",
    "cross", "trapezoid", "nan_to_num", "lerp", "atan2", "hypot", "logaddexp", "special.bessel_j0", "i0", "lgamma",
)  # fmt: skip
"""Entries of PyTorch's OpInfo database, each with its first sample in float32."""


class Program(NamedTuple):
    """A function, and a call of it, in training with its gradients; ``dynamic`` leaves the size of the batch open."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    training: bool = False
    dynamic: bool = False


def models(start: str = "") -> Iterator[Program]:
    """Each architecture twice, the same weights and inputs on every release of torch; those whose names start so."""
    for name, dynamic in (*((name, False) for name in MODELS), *((name, True) for name in DYNAMIC)):
        for training in (False, True):
            full = f"{name}{'-dynamic' if dynamic else ''}-{'train' if training else 'eval'}"
            if full.startswith(start):
                module, inputs = architectures.build(name)
                for tensor in inputs.values() if dynamic else ():
                    torch._dynamo.mark_dynamic(tensor, 0)
                yield Program(full, module.train(training), (), inputs, training, dynamic)


def ops(start: str = "") -> Iterator[Program]:
    """One sample of each op. Importing the samples changes torch for the whole process."""
    chosen = [name for name in OPS if f"op-{name}".startswith(start)]
    if not chosen:
        return
    from torch.testing._internal import common_methods_invocations as invocations

    known = {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in invocations.op_db}
    for name in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sample = next(iter(known[name].sample_inputs("cpu", torch.float32)))
        yield Program(f"op-{name}", _called(known[name].op), (sample.input, *sample.args), dict(sample.kwargs))


def _called(op: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    return call
