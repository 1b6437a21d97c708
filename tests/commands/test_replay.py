"""``fairlead replay``: a saved graph through a backend, beside the interpreter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from fairlead import ir
from fairlead._cli.replay import replay
from fairlead.errors import FairleadError
from fairlead.registry import registry
from tests.conftest import BACKEND, Site

from .conftest import Command, error, small

WRONG = """
    def compile(self, graph, options, constants):
        from fairlead.interpret import run

        class Wrong:
            baked = frozenset()
            fresh_outputs = True

            def __call__(self, inputs):
                return [x + 1 for x in run(graph, inputs)]

        return Wrong()
"""

CHOICE = """
    class Choice(Options, frozen=True, kw_only=True):
        most: int = 4

    options_type = Choice

    def compile(self, graph, options, constants):
        from fairlead.interpret import run

        class Short:
            baked = frozenset()
            fresh_outputs = True

            def __call__(self, inputs):
                return [x * (x.shape[0] <= options.most) for x in run(graph, inputs)]

        return Short()
"""

RAISES = """
    def compile(self, graph, options, constants):
        raise ValueError("out of registers")
"""

COMPILE = """
    def compile(self, graph, options, constants):
        raise NotImplementedError
"""


def test_a_graph_without_weights_is_run_on_drawn_ones(command: Command, file: Path) -> None:
    result = command("replay", file.name, "--backend", "eager", "--json")
    assert result.returncode == 0, result.stderr
    (found,) = json.loads(result.stdout)
    (output,) = found["outputs"]
    assert (output["type"], output["problem"]) == ("float32[3, 4]", "")
    assert found["placement"]["graphs"][0]["nodes"][0]["op"] == "aten.linear.default"


def test_the_table_says_that_every_output_agrees(command: Command, file: Path) -> None:
    result = command("replay", file.name, "--backend", "eager", "--seed", "7")
    assert result.returncode == 0
    assert result.stdout.rstrip().endswith("every output agrees")


def test_every_graph_of_a_training_step_is_run(command: Command) -> None:
    assert command("capture", "models.py:net", "-o", "net.fir", "--train").returncode == 0
    result = command("replay", "net.fir", "--backend", "inductor", "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    assert [g["graph"] for g in json.loads(result.stdout)] == ["forward_0", "backward_1"]


def test_the_interpreter_without_torch_is_another_witness(command: Command, file: Path) -> None:
    result = command("replay", file.name, "--backend", "eager", "--against", "numpy", "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    ((output,),) = (found["outputs"] for found in json.loads(result.stdout))
    assert 0.0 <= output["error"] < 1e-5


def test_a_wrong_number_is_exit_status_1(command: Command, site: Site, file: Path) -> None:
    site.backend("acme", BACKEND.format(name="acme").replace(COMPILE, WRONG))
    result = command("replay", file.name, "--backend", "acme")
    assert (result.returncode, result.stderr) == (1, "")
    assert "is off by" in result.stdout


def test_a_backend_that_does_not_compile_is_exit_status_1_with_what_it_said(
    command: Command, site: Site, file: Path
) -> None:
    site.backend("acme", BACKEND.format(name="acme").replace(COMPILE, RAISES))
    result = command("replay", file.name, "--backend", "acme")
    assert result.returncode == 1
    assert "acme failed to compile: ValueError: out of registers" in result.stdout
    assert "Traceback" not in result.stderr


def test_a_backend_that_is_not_there_or_not_ready_is_named(command: Command, site: Site, file: Path) -> None:
    assert error(command("replay", file.name, "--backend", "acme")) == "FL101: no backend is called 'acme'"
    unready = 'return Probe(ok=False, reason="no device")'
    ready = 'return Probe(ok=True, devices=("cpu",), versions={"sdk": "1.2"})'
    site.backend("acme", BACKEND.format(name="acme").replace(ready, unready))
    assert error(command("replay", file.name, "--backend", "acme")).startswith("FL105: ")


def test_an_op_that_torch_does_not_have_is_an_error(command: Command, file: Path) -> None:
    ir.write(file, small("my.own.default"), weights="none")
    assert error(command("replay", file.name, "--backend", "eager")).startswith("FL601: the op my.own.default")


def test_a_symbol_has_the_size_and_the_backend_the_option_that_is_given(
    site: Site, file: Path, capfdbinary: pytest.CaptureFixture[bytes], request: pytest.FixtureRequest
) -> None:
    """The backend is wrong beyond a size, which is its option; 4 is what a symbol is where nobody says else."""
    source = BACKEND.format(name="acme").replace(COMPILE, CHOICE).replace("NoOptions, P", "NoOptions, Options, P")
    site.backend("acme", source.replace('dtypes=("f32",)', 'dtypes=("f32",), dynamic_shapes=True'))
    builder = ir.Builder("rows", "inference")
    builder.output(builder.op("aten.exp.default", builder.input(ir.TensorType(ir.DType.f32, ("s", 2)))))
    ir.write(file, builder.graph())
    registry.refresh()
    request.addfinalizer(registry.refresh)
    with pytest.raises(typer.Exit) as ended:
        replay(file, "acme", size=["s=9"], json=True)
    assert ended.value.exit_code == 1
    replay(file, "acme", size=["s=9"], option=["most=9"], json=True)
    assert capfdbinary.readouterr().out.count(b'"type": "float32[9, 2]"') == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"option": ["thread=4"]}, "FL201: backend 'onnxrt' has no option 'thread'"),
        ({"option": ["intra_op_threads=two"]}, "FL202: option 'intra_op_threads' is 'two' .str., expected int"),
        ({"size": ["s=4"]}, "FL203: there is no symbol 's'"),
        ({"size": ["s"]}, "FL203: 's' is no NAME=VALUE"),
    ],
)
def test_options_and_sizes_that_are_not_there_are_errors(file: Path, given: dict[str, list[str]], said: str) -> None:
    with pytest.raises(FairleadError, match=said):
        replay(file, "onnxrt", **given)  # type: ignore[arg-type]
