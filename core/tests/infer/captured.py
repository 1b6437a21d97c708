"""Captures PyTorch's own samples of ops, or small models, and compares every node with the rule of its op.

A program of its own, because importing the samples changes torch for the whole process. It prints one JSON object a
line: for each program its name, what could not be captured, how many nodes were right, wrong or unknown by op, and the
text of those that were wrong. ``captured.py opinfo --help`` says what can be chosen.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from fairlead._capture import Captured, capture
from fairlead.interpret import to_fx
from fairlead.ir import Graph, Kind, TensorType, node_text, type_text
from fairlead.ir.infer import Finding, Verdict, compare_types
from fairlead.passes import canonicalize, recognize_composites


class Recorder:
    """Takes the graphs of a program, and runs them as the interpreter has it."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.reasons: list[str] = []

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        self.graphs.append(recognize_composites(canonicalize(captured.graph)))
        run = to_fx(captured.graph).forward
        return boxed(lambda args: list(run(*args, *captured.constants.values())))

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        self.reasons.append(reason)
        return boxed(lambda args: gm.forward(*args))


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """As AOTAutograd wants it: the callee empties the list of arguments."""

    def call(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        return run(given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def compared(name: str, program: Callable[..., Any], args: Sequence[Any], dynamic: bool, **kwargs: Any) -> None:
    """Capture one call of a program, forward and (where something wants a gradient) backward; print the findings."""
    torch._dynamo.reset()
    recorder = Recorder()
    compiled = torch.compile(program, backend=lambda gm, inputs: capture(gm, inputs, recorder), dynamic=dynamic)
    failure = ""
    try:
        backward(compiled(*args, **kwargs))
    except Exception as error:  # a sample that torch cannot trace must not cost the others
        failure = f"{type(error).__name__}: {error}".splitlines()[0]
    findings = [f for graph in recorder.graphs for f in compare_types(graph)]
    wrong = [shown(f) for f in findings if f.verdict is Verdict.wrong]
    counts = Counter((f.node.op, "symbolic" if symbolic(f) else "static", f.verdict) for f in findings)
    rows = [[*key, count] for key, count in counts.items()]
    print(json.dumps({"name": name, "rows": rows, "wrong": wrong, "left": [*recorder.reasons, failure]}), flush=True)


def backward(results: Any) -> None:
    """Propagate ones back from every result that has a gradient, or from a model's loss alone."""
    loss = getattr(results, "loss", None)
    found = [loss] if loss is not None else tree_flatten(results)[0]
    wanting = [x for x in found if isinstance(x, torch.Tensor) and x.requires_grad]
    if wanting:
        torch.autograd.backward(wanting, [torch.ones_like(x) for x in wanting])


def symbolic(finding: Finding) -> bool:
    """Whether a size of the node depends on symbols."""
    node = finding.node
    types = [v.type for v in (*node.operands(), *node.results) if v is not None]
    return not all(isinstance(t, TensorType) and t.is_static for t in types)


def shown(finding: Finding) -> str:
    """The node, its operands' types and the inferred ones."""
    operands = ", ".join(type_text(v.type) for v in finding.node.operands())
    inferred = finding.why or ", ".join("_" if t is None else type_text(t) for t in finding.inferred)
    return f"{node_text(finding.node)}; of {operands}; inferred {inferred}"


def unseeded(op: Any, *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


def opinfo(names: Sequence[str], dtypes: Sequence[str], samples: int, dynamic: bool, part: str) -> None:
    """Compare samples of the named ops, or of all: spread over the first that torch has of each."""
    from torch.testing._internal import common_methods_invocations as invocations

    invocations.wrapper_set_seed = unseeded  # it breaks graphs
    index, count = map(int, part.split("/"))
    named = [(f"{op.name}.{op.variant_test_name}".rstrip("."), op) for op in invocations.op_db]
    chosen = [(name, op) for name, op in named if not names or name in names][index::count]
    for (name, op), dtype in itertools.product(chosen, dtypes):
        for sample in drawn(op, getattr(torch, dtype), samples):

            def call(*args: Any, op: Any = op, sample: Any = sample) -> Any:
                return op.op(*args, **sample.kwargs)

            compared(f"{name} {dtype}", call, (sample.input, *sample.args), dynamic)


def drawn(op: Any, dtype: torch.dtype, count: int) -> Iterator[Any]:
    if dtype not in op.supported_dtypes("cpu"):
        return
    grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    first = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), 24))
    yield from first[:: max(1, len(first) // count)][:count]


TEXT: dict[str, Any] = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}

MODELS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("BertForMaskedLM", {**TEXT, **SMALL}, "tokens"),
    "gpt2": ("GPT2LMHeadModel", {**TEXT, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}, "tokens"),
    "llama": ("LlamaForCausalLM", {**TEXT, **SMALL, "num_key_value_heads": 2}, "tokens"),
    "gemma": ("GemmaForCausalLM", {**TEXT, **SMALL, "num_key_value_heads": 1, "head_dim": 8}, "tokens"),
    "gpt_neox": ("GPTNeoXForCausalLM", {**TEXT, **SMALL}, "tokens"),
    "t5": ("T5ForConditionalGeneration", {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2,
                                          "num_heads": 4, "decoder_start_token_id": 0}, "tokens"),
    "mamba": ("MambaForCausalLM", {**TEXT, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, "tokens"),
    "vit": ("ViTForImageClassification", {**SMALL, "image_size": 32, "patch_size": 8}, "image"),
    "convnext": ("ConvNextForImageClassification", {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]}, "image"),
    "resnet": ("ResNetForImageClassification", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
               "image"),
    "segformer": ("SegformerForImageClassification", {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1],
                                                      "decoder_hidden_size": 16}, "image"),
}  # fmt: skip
"""Class, configuration and kind of input of each model."""


MODES = {"inference": (False, False), "training": (True, False), "autocast": (True, True)}
"""Whether a mode trains, and whether under autocast."""


def models(names: Sequence[str], modes: Sequence[str], dynamic: bool) -> None:
    """Compare small models of transformers: in inference, and a step of training, without and with autocast."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    for name, mode in itertools.product(names or MODELS, modes):
        training, autocast = MODES[mode]
        module, inputs = built(name)
        module.train(training)
        with torch.set_grad_enabled(training), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            compared(f"{name} {mode}", module, (), dynamic, **inputs)


def built(name: str) -> tuple[Any, dict[str, Any]]:
    import transformers

    torch.manual_seed(0)
    kind, options, takes = MODELS[name]
    model_class = getattr(transformers, kind)
    module = model_class(model_class.config_class(**options))
    if takes == "image":
        return module, {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}
    tokens = torch.randint(3, 64, (2, 10))
    cached = {} if name in ("bert", "mamba") else {"use_cache": False}
    return module, {"input_ids": tokens, "labels": tokens, **cached}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("opinfo", "models"))
    parser.add_argument("names", nargs="*", help="ops as OpInfo names them, or models; all where none is given")
    parser.add_argument("--dtype", action="append", help="of the samples; float32 where none is given")
    parser.add_argument("--mode", action="append", choices=MODES, help="of the models; all where none is given")
    parser.add_argument("--samples", type=int, default=1, help="of each op and dtype")
    parser.add_argument("--dynamic", action="store_true", help="with symbolic sizes")
    parser.add_argument("--part", default="0/1", help="which of how many equal parts of the ops")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.what == "models":
        models(options.names, options.mode or list(MODES), options.dynamic)
    else:
        opinfo(options.names, options.dtype or ["float32"], options.samples, options.dynamic, options.part)


if __name__ == "__main__":
    main()
