"""Options are checked against the installed ONNX Runtime, and reach its session."""

from __future__ import annotations

import onnxruntime
import pytest
import torch

import fairlead
from fairlead.errors import OptionValueError
from fairlead_onnxrt import OnnxRuntimeOptions
from fairlead_onnxrt._session import settings_of

CPU = "CPUExecutionProvider"


def test_a_provider_that_the_build_lacks_is_refused_before_anything_is_compiled() -> None:
    assert "TensorrtExecutionProvider" not in onnxruntime.get_available_providers()
    with pytest.raises(OptionValueError) as caught:
        fairlead.compile(torch.relu, backend="onnxrt", options={"providers": ["TensorrtExecutionProvider", CPU]})
    what, where, advice = str(caught.value).splitlines()
    assert what == (
        "FL202: option 'providers' has 'TensorrtExecutionProvider', which this build of ONNX Runtime does not have"
    )
    assert where == f"  from: backend 'onnxrt', onnxruntime {onnxruntime.__version__}"
    assert CPU in advice


def test_options_of_a_provider_that_is_not_used_are_refused() -> None:
    with pytest.raises(OptionValueError, match="'provider_options' is for 'CUDAExecutionProvider', which is not among"):
        OnnxRuntimeOptions(provider_options={"CUDAExecutionProvider": {"device_id": "1"}})


def test_options_reach_the_session() -> None:
    settings = settings_of(
        OnnxRuntimeOptions(
            inter_op_threads=2,
            deterministic=True,
            memory_arena=False,
            memory_pattern=False,
            session_config={"session.set_denormal_as_zero": "1"},
        )
    )
    assert (settings.inter_op_num_threads, settings.execution_mode) == (2, onnxruntime.ExecutionMode.ORT_PARALLEL)
    assert settings.use_deterministic_compute
    assert (settings.enable_cpu_mem_arena, settings.enable_mem_pattern) == (False, False)
    assert settings.get_session_config_entry("session.set_denormal_as_zero") == "1"


def test_a_program_runs_with_a_provider_and_its_options() -> None:
    options = {"providers": [CPU], "provider_options": {CPU: {}}, "inter_op_threads": 2, "memory_pattern": False}
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(fairlead.compile(torch.relu, backend="onnxrt", options=options)(x), x.relu())
