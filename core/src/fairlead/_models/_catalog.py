"""The bundled models by name, and the checks of a MODEL argument that need no torch."""

from __future__ import annotations

import difflib
from importlib.util import find_spec
from pathlib import Path

from fairlead.errors import ExtraMissingError, ModelNotFoundError, TorchMissingError

__all__ = ["CATALOG", "check_spec", "require_numpy", "require_torch"]

CATALOG: dict[str, str] = {
    "mlp": "two linear layers and a GELU: a quick look, without transformers",
    "resnet50": "ResNet-50, 96 by 96 pixels, batch 2",
    "vit-b": "ViT-Base with 4 layers, 112 by 112 pixels, batch 2",
    "bert": "BERT-base with 4 layers, 48 tokens with padding, batch 2",
    "gpt2": "GPT-2 with 4 layers, 48 tokens, batch 2",
    "llama": "Llama with 4 layers of width 512, grouped-query attention, 48 tokens, batch 2",
    "t5": "T5-small with 4 + 4 layers, 48 tokens in and 24 out, batch 2",
    "whisper": "Whisper-tiny, 4 seconds of sound, 24 tokens, batch 1",
}
"""Bundled names, each with one line for ``fairlead compare --list``."""

WITHOUT_TRANSFORMERS = frozenset({"mlp"})


def check_spec(spec: str) -> None:
    """Raise what can be known about a MODEL argument without importing torch or the user's code.

    >>> check_spec("berd")
    Traceback (most recent call last):
        ...
    fairlead.errors.ModelNotFoundError: FL701: no model is called 'berd'
      from: 8 bundled models, none of them with this name
      next: did you mean 'bert'? 'fairlead compare --list' lists them; or give module:factory
    """
    require_torch(f"MODEL {spec!r}")
    if spec.endswith(".fir"):
        _check_file(spec)
        return
    if ":" in spec:
        return
    if spec not in CATALOG:
        raise _unknown(spec)
    if spec not in WITHOUT_TRANSFORMERS and find_spec("transformers") is None:
        raise ExtraMissingError(
            f"the bundled model {spec!r} needs transformers, which is not installed",
            where="fairlead's extra 'models'",
            next="pip install 'fairlead[models]'; or 'mlp', which needs nothing more",
        )


def require_torch(where: str) -> None:
    """Raise `TorchMissingError` where torch is not installed; does not import it."""
    if find_spec("torch") is None:
        raise TorchMissingError(
            "running a model needs torch, which is not installed", where=where, next="pip install 'fairlead[torch]'"
        )


def require_numpy(where: str) -> None:
    """Raise `ExtraMissingError` where the packages of `fairlead.numpy` are not installed; does not import them."""
    if missing := [name for name in ("numpy", "ml_dtypes") if find_spec(name) is None]:
        raise ExtraMissingError(
            f"the NumPy interpreter needs {' and '.join(missing)}: not installed",
            where=where,
            next="pip install 'fairlead[numpy]'",
        )


def _check_file(spec: str) -> None:
    if not Path(spec).is_file():
        raise ModelNotFoundError(
            f"there is no file {spec!r}",
            where=f"the folder {Path.cwd()}",
            next="check the path; a .fir file is one saved graph",
        )


def _unknown(spec: str) -> ModelNotFoundError:
    near = difflib.get_close_matches(spec, CATALOG, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return ModelNotFoundError(
        f"no model is called {spec!r}",
        where=f"{len(CATALOG)} bundled models, none of them with this name",
        next=f"{hint}'fairlead compare --list' lists them; or give module:factory",
    )
