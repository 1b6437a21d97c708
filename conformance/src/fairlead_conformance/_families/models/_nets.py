"""Small nets of the kinds that people compile, made of common ops; weights come from the caller's seed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 5)
        )

    def forward(self, x: Tensor) -> Any:
        return functional.log_softmax(self.layers(x), -1)


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Any:
        x = functional.max_pool2d(self.first(x).relu(), 2)
        return self.head(functional.adaptive_avg_pool2d(self.second(x).relu(), 1).flatten(1))


class ResidualBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3, 2, 1, bias=False), nn.Conv2d(8, 8, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(4, 8, 1, 2, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(3))

    def forward(self, x: Tensor) -> Any:
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + self.norms[2](self.short(x))).relu()


class Separable(nn.Module):
    """A convolution per channel, one across channels, and gates for channels."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise, self.pointwise = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 12, 1)
        self.squeeze, self.excite = nn.Linear(12, 3), nn.Linear(3, 12)

    def forward(self, x: Tensor) -> Any:
        y = functional.hardswish(self.pointwise(functional.relu6(self.depthwise(x))))
        gate = self.excite(self.squeeze(y.mean((2, 3))).relu()).sigmoid()
        return y * gate[:, :, None, None]


class Recurrent(nn.Module):
    """The equations of an LSTM, step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Linear(6 + 8, 32)

    def forward(self, x: Tensor) -> Any:
        hidden = cell = x.new_zeros(x.shape[0], 8)
        outputs = []
        for step in x.unbind(1):
            i, f, g, o = self.gates(torch.cat([step, hidden], 1)).chunk(4, 1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            outputs.append(hidden)
        return torch.stack(outputs, 1), cell


class Attention(nn.Module):
    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Any:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Encoder(nn.Module):
    """An embedding with positions, and two blocks that a mask of padding reaches."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(32, 16, padding_idx=0), nn.Embedding(24, 16)
        self.attention = nn.ModuleList(Attention() for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(4))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(2))

    def forward(self, ids: Tensor) -> Any:
        mask = (ids != 0)[:, None, None, :]
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for index in range(2):
            x = x + self.attention[index](self.norms[2 * index](x), mask)
            x = x + self.mlps[index](self.norms[2 * index + 1](x))
        return x.mean(1)


class Rotary(nn.Module):
    """Root mean square norm, rotary positions, causal attention, and a gated layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.rand(16) + 0.5)
        self.qkv, self.gate = nn.Linear(16, 48, bias=False), nn.Linear(16, 64, bias=False)
        self.down = nn.Linear(32, 16, bias=False)

    def normed(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.norm

    def turned(self, x: Tensor) -> Tensor:
        speeds = torch.tensor([1.0, 0.1, 0.01, 0.001], dtype=x.dtype, device=x.device)
        angle = torch.arange(x.shape[-2], dtype=x.dtype, device=x.device)[:, None] * speeds
        angle = torch.cat([angle, angle], -1)
        left, right = x.chunk(2, -1)
        return x * angle.cos() + torch.cat([-right, left], -1) * angle.sin()

    def forward(self, x: Tensor) -> Any:
        q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.qkv(self.normed(x)).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
        x = x + mixed.transpose(1, 2).flatten(2)
        gate, up = self.gate(self.normed(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Decoder(nn.Module):
    """One step of decoding against a cache that is written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.qkv, self.head = nn.Embedding(20, 8), nn.Linear(8, 24), nn.Linear(8, 20)
        self.keys: Tensor
        self.values: Tensor
        self.register_buffer("keys", torch.zeros(1, 12, 8))
        self.register_buffer("values", torch.zeros(1, 12, 8))

    def forward(self, ids: Tensor, position: Tensor) -> Any:
        q, k, v = self.qkv(self.tokens(ids)).chunk(3, -1)
        self.keys.index_copy_(1, position, k)
        self.values.index_copy_(1, position, v)
        scores = (q @ self.keys.mT) / 8**0.5
        scores = scores.masked_fill(torch.arange(12, device=position.device) > position, float("-inf"))
        return self.head(scores.softmax(-1) @ self.values)


class Mixture(nn.Module):
    """Tokens sent to the best two of four experts, and their answers added up again."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> Any:
        weights, chosen = self.router(x).softmax(-1).topk(2)
        gates = x.new_zeros(x.shape[0], 4).scatter(1, chosen, weights)
        return sum((gates[:, i : i + 1] * expert(x).relu() for i, expert in enumerate(self.experts)), x)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 6, 3, stride=2, padding=1)
        self.norm, self.up = nn.GroupNorm(2, 6), nn.ConvTranspose2d(6, 6, 2, stride=2)
        self.out = nn.Conv2d(12, 2, 1)

    def forward(self, x: Tensor) -> Any:
        skip = functional.silu(self.down(x))
        deep = functional.silu(self.norm(self.middle(skip)))
        wide = self.up(deep) + functional.interpolate(deep, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.out(torch.cat([wide, skip], 1))


class Bags(nn.Module):
    """Rows of a table, weighted and added up by bag, crossed with dense features."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.dense, self.top = nn.Embedding(40, 8), nn.Linear(5, 8), nn.Linear(8 + 3, 1)

    def forward(self, ids: Tensor, weights: Tensor, dense: Tensor) -> Any:
        bags = (self.table(ids) * weights.unsqueeze(-1)).sum(2)
        both = torch.cat([bags, self.dense(dense).relu().unsqueeze(1)], 1)
        crossed = both @ both.mT
        pairs = torch.stack([crossed[:, 0, 1], crossed[:, 0, 2], crossed[:, 1, 2]], 1)
        return self.top(torch.cat([both[:, -1], pairs], 1)).sigmoid()


class Detector(nn.Module):
    """Boxes that are clamped and sorted by score, and the best of them."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes, self.scores = nn.Linear(8, 4), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Any:
        centre, size = self.boxes(x).chunk(2, -1)
        boxes = torch.cat([centre - size.exp() / 2, centre + size.exp() / 2], -1).clamp(-2, 2)
        best, label = self.scores(x).sigmoid().max(-1)
        top, index = best.topk(4, 1)
        return boxes.gather(1, index.unsqueeze(-1).expand(-1, -1, 4)), top, label.gather(1, index)


class StateSpace(nn.Module):
    """A recurrence over time whose step the input chooses, with a causal convolution before it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.steps = nn.Conv1d(6, 6, 3, groups=6, padding=2), nn.Linear(6, 6)
        self.decay = nn.Parameter(-torch.rand(6, 4))
        self.into, self.out = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Any:
        x = functional.silu(self.conv(x.mT)[..., : x.shape[1]].mT)
        delta, into, out = functional.softplus(self.steps(x)), self.into(x), self.out(x)
        state = x.new_zeros(x.shape[0], 6, 4)
        results = []
        for t in range(x.shape[1]):
            state = state * (delta[:, t, :, None] * self.decay).exp()
            state = state + (delta[:, t] * x[:, t]).unsqueeze(-1) * into[:, t].unsqueeze(1)
            results.append((state * out[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(results, 1)


class Variational(nn.Module):
    """An encoder of mean and variance, a sample, a decoder, and the divergence."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(10, 8), nn.Linear(4, 10)

    def forward(self, x: Tensor) -> Any:
        mean, log_variance = self.encoder(x).chunk(2, -1)
        sample = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(-1).mean()
        return self.decoder(sample).sigmoid(), divergence


class Quantised(nn.Module):
    """Weights of eight bits, accumulated in integers and scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.weight: Tensor
        self.scale: Tensor
        self.register_buffer("weight", torch.randint(-127, 128, (6, 10), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(6) / 100)

    def forward(self, x: Tensor) -> Any:
        step = x.abs().amax(-1, keepdim=True) / 127
        whole = (x / step).round().clamp(-128, 127)
        products = whole.to(torch.int32).unsqueeze(-2) * self.weight.to(torch.int32)
        return products.sum(-1).to(x.dtype) * step * self.scale
