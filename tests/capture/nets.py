"""Small torch modules, each with one property that capture must get right."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

__all__ = ["Attention", "Buffered", "Drop", "InPlace", "Mlp", "Normed", "Tied", "Views", "batch"]


def batch(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor without contents."""
    return torch.empty(*shape, dtype=dtype, device="meta")


class Mlp(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Views(nn.Module):
    """One storage seen four ways, then used once."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y.t().reshape(-1).view(2, -1)[0].unsqueeze(0) + 1


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(tokens)).flatten(0, 1)


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        cache[1:2].copy_(x)
        y = x + 1
        y.mul_(3)
        return y + cache.sum()


class Buffered(nn.Module):
    """Fills an uninitialised buffer part by part."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(2, x.shape[0])
        out[0].copy_(x)
        out[1].copy_(x)
        return out


class Drop(nn.Module):
    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.fc, self.drop = nn.Linear(8, 8), nn.Dropout(p)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.fc(x)).sum()


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x)).relu().mean()


class Attention(nn.Module):
    """Grouped-query attention, dropout as given."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.q, self.kv, self.dropout = nn.Linear(16, 16), nn.Linear(16, 16), dropout

    def forward(self, x: torch.Tensor) -> Any:
        b, s, _ = x.shape
        q = self.q(x).view(b, s, 4, 4).transpose(1, 2)
        k, v = self.kv(x).view(b, s, 2, 2, 4).permute(2, 0, 3, 1, 4)
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout, enable_gqa=True)
