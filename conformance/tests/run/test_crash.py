"""What is kept of a crash, and what it names: the thread that died, and the innermost frame of the backend's."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch

import fairlead
from fairlead_conformance._run._crash import account, place


def printed(*frames: str, thread: str = "Current thread 0x02", other: str = "") -> str:
    return "\n".join(
        ["warming up", "Fatal Python error: Segmentation fault", "", *([other, ""] if other else []),
         f"{thread} (most recent call first):", *frames, "", "Extension modules: a.b, c.d (total: 2)", ""]
    )  # fmt: skip


def frame(file: object, line: int, function: str) -> str:
    return f'  File "{file}", line {line} in {function}'


OURS = [
    frame(ctypes.__file__, 519, "string_at"),
    frame(torch.nn.functional.__file__, 9, "relu"),
    frame(fairlead.__file__, 3, "compile"),
    frame("<frozen importlib._bootstrap>", 241, "_call_with_frames_removed"),
]


def test_the_innermost_frame_that_is_the_backends_is_named(tmp_path: Path) -> None:
    package = tmp_path / "site-packages/openvino"
    (package / "inner").mkdir(parents=True)
    for folder in (package, package / "inner"):
        (folder / "__init__.py").touch()
    frames = [*OURS, frame(package / "inner/_api.py", 633, "compile_model"), frame(package / "top.py", 2, "run")]
    assert place(printed(*frames)) == " in openvino/inner/_api.py:633 compile_model"


def test_frames_of_python_torch_core_and_the_suite_are_nobodys() -> None:
    assert place(printed(*OURS)) == ""
    assert place("no crash at all") == ""


def test_of_several_threads_the_one_that_died_counts() -> None:
    other = "Thread 0x01 (most recent call first):\n" + frame("/opt/acme/pool.py", 1, "wait")
    assert place(printed(frame("/opt/acme/run.py", 7, "infer"), other=other)) == " in run.py:7 infer"
    later = printed(frame("/opt/acme/run.py", 7, "infer"), thread="Thread 0x02", other=other)
    assert place(later) == " in a thread of its own, while Python was in run.py:7 infer"


def test_what_is_kept_has_the_innermost_frames_and_is_no_longer_than_asked() -> None:
    frames = [frame("/opt/acme/run.py", line, "infer") for line in range(100)]
    kept = account("x" * 10_000 + "\n" + printed(*frames), 4096)
    assert len(kept) <= 4096
    assert [line for line in (0, 29, 30) if frames[line] in kept] == [0, 29]
    assert "warming up" in kept
    assert "Extension modules" not in kept
    assert account("x" * 10_000, 4096) == "x" * 4096
