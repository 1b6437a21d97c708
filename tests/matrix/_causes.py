"""Why graphs of one program differ between releases of torch, where they do."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CAUSES", "REFERENCE", "Cause", "causes"]

REFERENCE = "2.13"
"""The release that others are compared with."""


class Cause(NamedTuple):
    """What makes graphs of programs, whose names start so, differ on some releases from those of the reference."""

    programs: tuple[str, ...]
    releases: tuple[str, ...]
    text: str


CAUSES = (
    # tests/test_corpus.py shows it: with that answer torch 2.13 gives the graphs of torch 2.11
    Cause(
        ("mamba-", "t5-", "vit-", "wav2vec2-"),
        ("2.8", "2.11"),
        "transformers asks `torch.compiler.is_exporting()`, which Dynamo answers with true before torch 2.13; it then "
        "keeps masks that hide nothing, and loops over positions instead of calling `associative_scan`",
    ),
    Cause(
        ("llama-train", "mamba-train", "mixtral-train"),
        ("2.8",),
        "torch 2.8 takes `silu_backward` apart before it can be captured",
    ),
    Cause(
        ("detr-train",),
        ("2.8", "2.11"),
        "from 2.13 on, torch traces a backward with the gradient in the strides of the output; before, row-major",
    ),
    Cause(("wav2vec2-train",), ("2.15",), "dropout with probability 0 is a copy before torch 2.15, and then nothing"),
    Cause(("op-take_along_dim",), ("2.8",), "after 2.8 torch wraps the negative indices of `take_along_dim`"),
    Cause(("op-fft.rfft",), ("2.8", "2.11"), "torch says other strides of what `fft_r2c` makes"),
    Cause(("op-cdist",), ("2.15",), "the first of torch's samples of `cdist` is another one, with another norm"),
)


def causes(program: str, release: str) -> list[Cause]:
    """Those that hold for a program on a release."""
    return [c for c in CAUSES if release in c.releases and program.startswith(c.programs)]
