# mypy: disable-error-code="no-any-return"
"""Transformers: GPT (causal), BERT (padding mask), ViT (images), Llama (RoPE, grouped queries, SwiGLU)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017); one product makes queries, keys and values."""

    def __init__(self, width: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x: f32[B, T, width]; mask: bool[B, 1, 1, T], True where a key may be looked at."""
        batch, steps, width = x.shape
        qkv = self.qkv(x).view(batch, steps, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, steps, width))


class Block(nn.Module):
    """Attention and a perceptron, each after a layer norm and beside a residual connection."""

    def __init__(self, width: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """GPT-2 (Radford et al. 2019) in small; the head shares its weight with the token embedding."""

    def __init__(self, vocab: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=width**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: i64[B, T] -> logits: f32[B, T, vocab]."""
        steps = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(steps)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def gpt(layers: int = 4, steps: int = 64, batch: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    """A GPT of 4 layers, width 128, 4 heads, on 64 tokens of a vocabulary of 256."""
    model = GPT(vocab=256, context=steps, width=128, heads=4, layers=layers)
    return model, (torch.randint(256, (batch, steps)),)


class BERT(nn.Module):
    """A BERT-like encoder (Devlin et al. 2018) that ignores padding, with a pooled class score."""

    def __init__(self, vocab: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, width, padding_idx=0)
        self.positions = nn.Parameter(0.02 * torch.randn(1, context, width))
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: i64[B, T], 0 where padded -> logits: f32[B, 2]."""
        mask = (ids != 0)[:, None, None, :]
        x = self.norm(self.tokens(ids) + self.positions)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(torch.tanh(self.pool(x[:, 0])))


def bert(layers: int = 2, steps: int = 32, batch: int = 2) -> tuple[nn.Module, tuple[Tensor]]:
    """A BERT encoder of 2 layers, width 128; the second sequence is half padding."""
    model = BERT(vocab=256, context=steps, width=128, heads=4, layers=layers)
    ids = torch.randint(1, 256, (batch, steps))
    ids[1:, steps // 2 :] = 0
    return model, (ids,)


class ViT(nn.Module):
    """A vision transformer (Dosovitskiy et al. 2020): patches as tokens, a class token in front."""

    def __init__(self, size: int, patch: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, image: Tensor) -> Tensor:
        """image: f32[B, 3, size, size] -> logits: f32[B, 10]."""
        x = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


def vit(layers: int = 4, batch: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    """A vision transformer on 32x32 images in 4x4 patches: 4 layers of width 96."""
    model = ViT(size=32, patch=4, width=96, heads=3, layers=layers)
    return model, (torch.randn(batch, 3, 32, 32),)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (Su et al. 2021): x: f32[B, H, T, D]; cos, sin: f32[T, D/2].

    The halves of D are the two coordinates of D/2 points; each turns by position * frequency.
    """
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class LlamaBlock(nn.Module):
    """Grouped-query attention with RoPE, then SwiGLU; RMS norms, no biases (Touvron et al. 2023)."""

    def __init__(self, width: int, heads: int, groups: int, hidden: int) -> None:
        super().__init__()
        self.size = width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, False), nn.Linear(width, hidden, False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x), cos, sin)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def attend(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, steps, width = x.shape
        q, k, v = (
            f(x).view(batch, steps, -1, self.size).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).reshape(batch, steps, width))


class Llama(nn.Module):
    """Llama in small: the angles of RoPE are computed in the forward, as a function of T."""

    frequency: Tensor

    def __init__(self, vocab: int, width: int, heads: int, groups: int, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(
            LlamaBlock(width, heads, groups, hidden=width * 8 // 3) for _ in range(layers)
        )
        self.norm, self.head = nn.RMSNorm(width, eps=1e-6), nn.Linear(width, vocab, bias=False)
        half = width // heads // 2
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(half) / half))

    def forward(self, ids: Tensor) -> Tensor:
        """ids: i64[B, T] -> logits: f32[B, T, vocab]."""
        angle = torch.outer(torch.arange(ids.shape[1], device=ids.device).float(), self.frequency)
        cos, sin = angle.cos(), angle.sin()
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def llama(layers: int = 4, steps: int = 32, batch: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    """A Llama of 4 layers, width 96, 6 query and 2 key heads, on 32 tokens."""
    model = Llama(vocab=256, width=96, heads=6, groups=2, layers=layers)
    return model, (torch.randint(256, (batch, steps)),)
