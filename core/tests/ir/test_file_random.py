from __future__ import annotations

import hashlib
import json
import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from fairlead.errors import IRFormatError
from fairlead.ir import DType, Graph, Input, Kind, Role, TensorData, TensorType, Value, read, write

SHAPE = (3, 700)


def _graph(dtype: DType, shape: tuple[int, ...] = SHAPE) -> Graph:
    inputs = (Input(Value(0, TensorType(dtype, shape)), Role.parameter, "weight"),)
    return Graph("random", Kind.inference, inputs, (), ())


def _drawn(path: Path, tensor: Any, dtype: DType) -> TensorData:
    write(path, _graph(dtype, tuple(tensor.shape)), {0: tensor}, weights="random")
    return read(path).constants()[0]


def _row(index: int, distribution: dict[str, Any]) -> dict[str, Any]:
    return {"graph": 0, "input": index, "random": distribution, "stream": index}


def _specify(path: Path, graph: Graph, *tensors: dict[str, Any], seed: int = 0) -> None:
    """A file with this random specification, as somebody else may have written it."""
    write(path, graph, weights="random")
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["weights.json"] = json.dumps({"seed": seed, "tensors": tensors}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def _word(seed: int, stream: int, i: int) -> int:
    """The generator as its documentation states it, written a second time."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1

    def mix(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    return mix((mix((seed + (stream + 1) * golden) & mask) + (i + 1) * golden) & mask)


def test_the_generator_is_splitmix64() -> None:
    """The published first outputs of SplitMix64 seeded with 1234567."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    words, state = [], 1234567
    for _ in range(3):
        state = (state + golden) & mask
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        words.append(z ^ z >> 31)
    assert words == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_numbers_are_those_of_the_documented_formulas(tmp_path: Path) -> None:
    inputs = tuple(Input(Value(i, TensorType(d, (5,)))) for i, d in enumerate([DType.f64, DType.f64, DType.i64]))
    _specify(
        tmp_path / "g.fir",
        Graph("g", Kind.inference, inputs, (), ()),
        _row(0, {"kind": "uniform", "low": -2.0, "high": 3.0}),
        _row(1, {"kind": "normal", "mean": 1.0, "std": 0.5}),
        _row(2, {"kind": "integers", "low": -3, "high": 9}),
        seed=42,
    )
    found = {i: numpy.asarray(c).tolist() for i, c in read(tmp_path / "g.fir").constants().items()}
    words = {t: [_word(42, t, i) for i in range(5)] for t in range(3)}
    deviation = math.sqrt((2.0**32 - 1) / 3)
    quarters = [sum(z >> s & 0xFFFF for s in (0, 16, 32, 48)) for z in words[1]]
    assert found == {
        0: [-2.0 + 5.0 * ((z >> 11) * 2.0**-53) for z in words[0]],
        1: [1.0 + 0.5 * ((q - 131070.0) / deviation) for q in quarters],
        2: [-3 + z % 13 for z in words[2]],
    }


@pytest.mark.parametrize("without", ["numpy", "nothing"])
def test_the_bytes_are_the_same_with_and_without_numpy(
    tmp_path: Path, without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = hashlib.sha256()
    for dtype in DType:
        long_name = getattr(torch, dtype.long_name)
        tensor = torch.arange(2100).reshape(SHAPE).sub(1000 if dtype.value[0] == "i" else 0).to(long_name)
        path = tmp_path / f"{dtype}.fir"
        write(path, _graph(dtype), {0: tensor}, weights="random")
        with monkeypatch.context() as patch:
            if without == "numpy":
                patch.setitem(__import__("sys").modules, "numpy", None)
            digest.update(read(path).constants()[0].data)
    assert digest.hexdigest() == "1cbf3107ed4a42292d70c5be24c775b6b4a1390b8bc7d71f864b824b7e3f13e4"


@pytest.mark.parametrize("dtype", [DType.f16, DType.bf16, DType.f32, DType.f64], ids=str)
def test_floats_resemble_the_tensor(tmp_path: Path, dtype: DType) -> None:
    tensor = torch.randn(SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3 + 1
    data = _drawn(tmp_path / "g.fir", tensor.to(getattr(torch, dtype.long_name)), dtype)
    drawn = torch.frombuffer(data.data, dtype=getattr(torch, dtype.long_name)).double()
    assert drawn.mean().item() == pytest.approx(1, abs=0.3)
    assert drawn.std().item() == pytest.approx(3, rel=0.1)


def test_what_is_never_negative_stays_so(tmp_path: Path) -> None:
    drawn = numpy.asarray(_drawn(tmp_path / "g.fir", torch.linspace(0.5, 2.0, 100), DType.f32))
    assert 0.5 <= drawn.min() < 0.6
    assert 1.9 < drawn.max() <= 2.0


def test_integers_stay_in_the_range_that_occurs(tmp_path: Path) -> None:
    drawn = numpy.asarray(_drawn(tmp_path / "g.fir", torch.tensor([-3, 5] * 100), DType.i64))
    assert set(drawn.tolist()) == set(range(-3, 6))


def test_a_tensor_of_one_number_is_drawn_as_it_was(tmp_path: Path) -> None:
    for number in (1.5, -1.5):
        drawn = numpy.asarray(_drawn(tmp_path / "g.fir", torch.full((4,), number), DType.f32))
        assert drawn.tolist() == [number] * 4


def test_a_mask_of_infinities_and_a_huge_number_give_finite_numbers(tmp_path: Path) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        name = next(d for d in DType if getattr(torch, d.long_name) is dtype)
        tensor = torch.tensor([0.0, -math.inf, math.nan, torch.finfo(dtype).min], dtype=dtype)
        data = _drawn(tmp_path / "g.fir", tensor, name)
        assert torch.frombuffer(data.data, dtype=dtype).isfinite().all()


def test_eight_bit_floats_lie_between_minus_one_and_one(tmp_path: Path) -> None:
    for name, dtype in ((DType.f8e4m3fn, torch.float8_e4m3fn), (DType.f8e5m2, torch.float8_e5m2)):
        data = _drawn(tmp_path / "g.fir", torch.ones(SHAPE).to(dtype), name)
        drawn = torch.frombuffer(data.data, dtype=dtype).float()
        assert drawn.isfinite().all()
        assert drawn.min() == -1
        assert drawn.max() == 1


def test_an_empty_tensor_is_drawn(tmp_path: Path) -> None:
    assert _drawn(tmp_path / "g.fir", torch.ones(0, 4), DType.f32).shape == (0, 4)


def test_the_weights_themselves_are_not_in_the_file(tmp_path: Path) -> None:
    write(tmp_path / "g.fir", _graph(DType.f32), {0: torch.randn(SHAPE)}, weights="random")
    assert (tmp_path / "g.fir").stat().st_size < 2000
    assert read(tmp_path / "g.fir").weights == "random"


def test_a_small_file_cannot_ask_for_large_memory_unnoticed(tmp_path: Path) -> None:
    graph = _graph(DType.f32, (1 << 40,))
    _specify(tmp_path / "g.fir", graph, _row(0, {"kind": "uniform", "low": 0.0, "high": 1.0}))
    with pytest.raises(
        IRFormatError, match="its random weights take 4398046511104 bytes, more than the limit"
    ) as caught:
        read(tmp_path / "g.fir").constants()
    assert caught.value.next == "pass constants(limit=4398046511104) if you trust the file"


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (_row(1, {"kind": "uniform", "low": 0.0, "high": 1.0}), "a constant for input 1"),
        (_row(0, {"kind": "integers", "low": 0, "high": 1}), "a random tensor for input 0"),
        (_row(0, {"kind": "uniform", "low": 1.0, "high": 0.0}), "a random tensor for input 0"),
        (_row(0, {"kind": "normal", "mean": 0.0, "std": -1.0}), "a random tensor for input 0"),
        (_row(0, {"kind": "normal", "mean": 1e200, "std": 1.0}), "a random tensor for input 0"),
        (_row(0, {"kind": "cauchy"}), "Invalid value 'cauchy'"),
        ({"graph": 0, "input": 0}, "a constant for input 0 that does not fit it"),
    ],
)
def test_a_specification_that_does_not_fit_is_a_format_error(
    tmp_path: Path, tensor: dict[str, Any], message: str
) -> None:
    _specify(tmp_path / "g.fir", _graph(DType.f32), tensor)
    with pytest.raises(IRFormatError, match=re.escape(message)):
        read(tmp_path / "g.fir")
