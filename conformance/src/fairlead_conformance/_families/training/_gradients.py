"""Gradients of one call, op by op and layer by layer, against float64."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairlead_conformance._case import Level
from fairlead_conformance._families.training._nets import Attention, Mlp, Normed
from fairlead_conformance._programs import Trial, check

_TRAINING = ("training",)


@check(Level.L3, needs=_TRAINING, mandatory=True)
def gradients_of_weights_and_inputs(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    twin.gradients(trial.normal(5, 8).requires_grad_())


@check(Level.L3, needs=_TRAINING, mandatory=True)
def gradients_of_biases(trial: Trial) -> None:
    trial.compile(trial.made(nn.Linear, 8, 4))(trial.normal(5, 8))
    trial.compile(trial.made(nn.Linear, 8, 4)).gradients(trial.normal(7, 8))


@check(Level.L3, needs=_TRAINING)
def gradients_add_up_over_calls(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    for _ in range(3):
        twin.gradients(trial.normal(5, 8))


@check(Level.L3, needs=_TRAINING)
def gradients_of_inputs_alone(trial: Trial) -> None:
    trial.compile(trial.made(Mlp).requires_grad_(False)).gradients(trial.normal(5, 8).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def a_frozen_layer(trial: Trial) -> None:
    module = trial.made(Mlp)
    module.get_submodule("up").requires_grad_(False)
    trial.compile(module).gradients(trial.normal(5, 8))


@check(Level.L3, needs=_TRAINING)
def one_input_with_gradients_and_one_without(trial: Trial) -> None:
    trial.compile(lambda x, y: (x * y, y * 2)).gradients(trial.normal(4).requires_grad_(), trial.normal(4))


@check(Level.L3, needs=_TRAINING)
def a_weight_used_twice(trial: Trial) -> None:
    class Twice(Mlp):
        def forward(self, x: Tensor) -> Any:
            return functional.linear(torch.tanh(self.up(x)), self.up.weight.t()) + x

    module = trial.made(Twice)
    module.get_submodule("down").requires_grad_(False)
    trial.compile(module).gradients(trial.normal(5, 8))


@check(Level.L3, needs=_TRAINING)
def tied_embeddings(trial: Trial) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(12, 8)

        def forward(self, ids: Tensor) -> Any:
            return torch.tanh(self.embedding(ids)) @ self.embedding.weight.t()

    trial.compile(trial.made(Tied)).gradients(trial.integers(12, 2, 6))


@check(Level.L3, needs=_TRAINING)
def an_embedding_row_used_many_times(trial: Trial) -> None:
    module = trial.made(nn.Embedding, 10, 4, padding_idx=0)
    trial.compile(module).gradients(trial.tensor([[3, 3, 0, 7], [3, 1, 0, 3]]))


@check(Level.L3, needs=_TRAINING)
def two_losses_of_one_program(trial: Trial) -> None:
    class Two(Mlp):
        def forward(self, x: Tensor) -> Any:
            y = torch.tanh(self.up(x))
            return self.down(y), y.mean()

    trial.compile(trial.made(Two)).gradients(trial.normal(5, 8))


@check(Level.L3, needs=_TRAINING)
def a_result_nobody_differentiates(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x * 3, x.detach() * 2, (x > 0)))
    twin.gradients(trial.normal(6).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def broadcast_gradients_are_summed(trial: Trial) -> None:
    def program(x: Tensor, row: Tensor, column: Tensor, one: Tensor) -> Tensor:
        return (x * row + column) * one

    shapes = ((4, 5), (5,), (4, 1), ())
    trial.compile(program).gradients(*(trial.normal(*shape).requires_grad_() for shape in shapes))


@check(Level.L3, needs=_TRAINING)
def views_on_the_way(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        y = x.view(2, 3, 4).transpose(1, 2)
        return torch.cat([y[:, :2] * 2, y[:, 1:].relu()], 1).reshape(2, -1)

    trial.compile(program).gradients(trial.normal(2, 12).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def writes_on_the_way(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        y = x * 2
        y[0].mul_(3)
        return y.add_(1).tanh_()

    trial.compile(program).gradients(trial.normal(3, 4).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def rows_gathered_more_than_once(trial: Trial) -> None:
    twin = trial.compile(lambda x, index: x[index] * x.sum(0))
    twin.gradients(trial.normal(5, 3).requires_grad_(), trial.tensor([0, 2, 2, 4, 2]))


@check(Level.L3, needs=_TRAINING)
def the_largest_of_equals(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x.amax(1), x.relu(), x.abs(), torch.maximum(x, x.flip(0))))
    twin.gradients(trial.tensor([[1.0, 1.0, 0.0], [0.0, -2.0, 0.0]]).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def a_convolution(trial: Trial) -> None:
    module = trial.made(nn.Conv2d, 3, 4, 3, stride=2, padding=1)
    trial.compile(module).gradients(trial.normal(2, 3, 7, 8).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def pooling(trial: Trial) -> None:
    twin = trial.compile(lambda x: (functional.max_pool2d(x, 2), functional.avg_pool2d(x, 3, 2, 1)))
    twin.gradients(trial.normal(2, 3, 6, 6).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def attention(trial: Trial) -> None:
    trial.compile(trial.made(Attention)).gradients(trial.normal(2, 5, 8).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def attention_in_one_call(trial: Trial) -> None:
    twin = trial.compile(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    twin.gradients(*(trial.normal(2, 2, 5, 4).requires_grad_() for _ in range(3)))


@check(Level.L3, needs=_TRAINING)
def a_layer_norm(trial: Trial) -> None:
    trial.compile(trial.made(Normed, nn.LayerNorm(6))).gradients(trial.normal(5, 8).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def a_batch_norm_and_its_statistics(trial: Trial) -> None:
    twin = trial.compile(trial.made(Normed, nn.BatchNorm1d(6)).train())
    for _ in range(2):
        twin.gradients(trial.normal(9, 8))
    twin.each(nn.Module.eval)
    twin(trial.normal(3, 8))


@check(Level.L3, needs=_TRAINING)
def losses(trial: Trial) -> None:
    def program(logits: Tensor, target: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        return (
            functional.cross_entropy(logits, target, label_smoothing=0.1),
            functional.mse_loss(logits, values),
            functional.binary_cross_entropy_with_logits(logits, values.sigmoid()),
        )

    target = trial.integers(4, 6)
    trial.compile(program).gradients(trial.normal(6, 4).requires_grad_(), target, trial.normal(6, 4))
