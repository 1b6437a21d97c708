"""The golden corpus: graphs captured on several releases of torch load, print, hash and compute as they did."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from mutants import mutants

from fairlead._torch_types import TORCH_DTYPES
from fairlead.errors import IRFormatError
from fairlead.interpret import run
from fairlead.ir import Graph, Value, diff, fingerprint, from_bytes, parse, read, to_bytes, to_text, write
from tests.matrix import _corpus
from tests.matrix.__main__ import THROUGH_THEM
from tests.matrix._causes import causes
from tests.matrix._summary import agree, drawn, summary
from tests.matrix.hashes import name_of

from .conftest import REPOSITORY

if TYPE_CHECKING:
    from tests.matrix._capture import Golden

with contextlib.suppress(ImportError):
    import transformers.integrations.moe  # noqa: F401 - registers ops that graphs of mixtral call

INDEX = _corpus.load()
RELEASE = ".".join(torch.__version__.split(".")[:2])
PYTHONS = [
    sys.executable,
    *filter(None, os.environ.get("FAIRLEAD_PYTHONS", "").split(os.pathsep)),
    *filter(None, (shutil.which(f"python3.{n}") for n in range(11, 20) if n != sys.version_info.minor)),
]
"""This Python, those named in FAIRLEAD_PYTHONS and those found by their names; they need msgspec alone."""

EXPORTED = ("mamba-train", "t5-eval", "vit-train", "wav2vec2-eval")
RECAPTURED = ("bert-eval", "resnet-train", "op-nn.functional.conv2d", "op-index_put")


@pytest.mark.parametrize("name", INDEX.files)
def test_a_golden_module_computes_what_it_did(name: str) -> None:
    entry = INDEX.files[name]
    graphs = _corpus.load_module(name).graphs
    for graph, inputs, outputs in zip(graphs, entry.inputs, entry.outputs, strict=True):
        absent = next((n.op for n in graph.walk() if not is_here(n.op)), None)
        if absent:
            with pytest.raises(IRFormatError, match=f"FL601: the op {absent} does not exist here"):
                run(graph, drawn(graph, inputs.split()))
            continue
        found = tuple(map(summary, run(graph, drawn(graph, inputs.split()))))
        wrong = [
            (index, a, b)
            for index, (a, b, dtype) in enumerate(zip(outputs, found, dtypes(graph), strict=True))
            if not agree(a, b, dtype)
        ]
        assert not wrong, f"{graph.name} of torch {entry.torch}"


def is_here(op: str) -> bool:
    """Whether this torch, or a library that is loaded, has an op."""
    if op.startswith(("nn.", "hop.")):
        return True
    namespace, name, overload = op.split(".")
    try:
        torch._C._get_schema(f"{namespace}::{name}", "" if overload == "default" else overload)
    except RuntimeError:
        return False
    return True


def test_a_golden_module_names_an_op_that_no_loaded_library_has() -> None:
    """Where transformers is not loaded, or is another release, as torch is where it is older than the file."""
    program = f"""if True:
        from fairlead.interpret import to_fx
        from tests.matrix import _corpus
        to_fx(_corpus.load_module({INDEX.programs["mixtral-eval"]["2.13"]!r}).graph)"""
    found = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)
    assert found.stderr.endswith(
        f"FL601: the op transformers.grouped_mm_fallback.default does not exist here\n"
        f"  from: torch {torch.__version__}\n"
        "  next: import the library that registers the operators of transformers\n"
    )


def dtypes(graph: Graph) -> list[torch.dtype]:
    return [TORCH_DTYPES[o.value.type.dtype] if isinstance(o.value, Value) else torch.int64 for o in graph.outputs]


@pytest.mark.parametrize("name", INDEX.files)
def test_a_golden_module_comes_back_from_its_forms(name: str, tmp_path: Path) -> None:
    golden = _corpus.load_module(name)
    write(tmp_path / "again.fir", golden, weights="none")
    forms = from_bytes(to_bytes(golden)), parse(to_text(golden)), read(tmp_path / "again.fir").module
    for again in forms:
        assert again == golden
        assert fingerprint(again) == fingerprint(golden)


@pytest.mark.parametrize("name", INDEX.files)
def test_a_change_of_a_golden_graph_changes_its_hash(name: str) -> None:
    """On every so many of the changes that ``benchmarks/mutations.py`` makes."""
    for graph in _corpus.load_module(name).graphs:
        wanted = fingerprint(graph)
        some = list(itertools.islice(mutants(graph), 0, None, 1 + len(graph.nodes)))
        assert [what for what, mutant in some if fingerprint(mutant) == wanted] == []
        assert len(some) > 5


@pytest.mark.parametrize("seed", ["1", "2"])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_finds_the_hashes_that_the_corpus_is_filed_under(python: str, seed: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY / "core/src"), "PYTHONHASHSEED": seed}
    if subprocess.run([python, "-c", "import msgspec"], env=env, capture_output=True).returncode:
        pytest.skip("it does not start here, or has no msgspec")
    command = [python, "-m", "tests.matrix.hashes"]
    run = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith(f": {len(INDEX.files)} of {len(INDEX.files)} files have their hash\n")


def test_every_program_is_there_for_every_release() -> None:
    releases = {"2.8", "2.11", "2.13", "2.15"}
    assert {name: set(found) for name, found in INDEX.programs.items()} == dict.fromkeys(INDEX.programs, releases)


@pytest.mark.parametrize(("release", "share"), [("2.15", 0.9), ("2.11", 0.7), ("2.8", 0.6)])
def test_most_models_hash_equally_on_two_releases(release: str, share: float) -> None:
    models = [found for name, found in INDEX.programs.items() if not name.startswith("op-")]
    assert sum(found[release] == found["2.13"] for found in models) >= share * len(models)


def test_what_hashes_differently_is_explained_line_by_line_and_has_a_cause() -> None:
    for name, found in INDEX.programs.items():
        for other in set(found.values()) - {found["2.13"]}:
            pairs = zip(_corpus.load_module(found["2.13"]).graphs, _corpus.load_module(other).graphs, strict=False)
            assert any(diff(a, b).differences for a, b in pairs), name
        differing = {release for release, file in found.items() if file != found["2.13"]}
        assert {release for release in found if causes(name, release)} == differing, name


@pytest.mark.skipif(RELEASE != "2.13", reason="2.13 is the release that others are compared with")
@pytest.mark.parametrize("name", EXPORTED)
def test_transformers_gives_other_programs_where_it_takes_compiling_for_exporting(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for asking in ("masking_utils", "models.mamba.modeling_mamba"):
        monkeypatch.setattr(f"transformers.{asking}.is_torchdynamo_exporting", lambda: True)
    assert name_of(golden.graph for golden in captured(name)) == INDEX.programs[name]["2.11"]


@pytest.mark.skipif(RELEASE not in {r for found in INDEX.programs.values() for r in found}, reason="no golden release")
@pytest.mark.parametrize("name", RECAPTURED)
def test_a_program_is_captured_as_it_was(name: str) -> None:
    old = _corpus.load_module(INDEX.programs[name][RELEASE]).graphs
    pairs = zip(old, (golden.graph for golden in captured(name)), strict=True)
    assert [str(diff(a, b)) for a, b in pairs if not diff(a, b).equal] == []


def captured(name: str) -> list[Golden]:
    capture = pytest.importorskip("tests.matrix._capture")
    programs = pytest.importorskip("tests.matrix._programs")
    (program,) = (*programs.models(name), *(p for p in programs.ops(name) if p.name == name))
    return capture.capture_program(program)


def test_the_matrix_runs_a_test_through_a_backend_and_not_for_what_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('backend', ['eager', 'onnxrt', 'tvm', 'ipex'])\n"
        "@pytest.mark.parametrize('mode', ['train', 'inference'])\n"
        "def test_gradients_are_eagers(mode, backend): pass\n"
        "def test_it_runs_in_eager_mode_beside_onnxrt(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-k", THROUGH_THEM]
    found = subprocess.run([*command, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    ids = {line.partition("::")[2] for line in found.splitlines() if "::" in line}
    modes, backends = ("train", "inference"), ("eager", "onnxrt")
    assert ids == {f"test_gradients_are_eagers[{mode}-{backend}]" for mode in modes for backend in backends}
