"""Plain torch networks that transformers does not build: VGG-19, U-Net, a mixture of experts with static routing."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

__all__ = ["VGG19", "MoE", "UNet"]


class VGG19(nn.Module):  # type: ignore[misc, unused-ignore]
    """VGG-19 (configuration E) for 224 × 224 images."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = 3
        for out, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
            for _ in range(count):
                layers += [nn.Conv2d(width, out, 3, padding=1), nn.ReLU(inplace=True)]
                width = out
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
            nn.Linear(4096, classes))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images).flatten(1))


class _DoubleConv(nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.norm2 = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(x)))


class UNet(nn.Module):  # type: ignore[misc, unused-ignore]
    """U-Net with four levels and skip connections, the long-lived activations of which make it hard to plan."""

    def __init__(self, classes: int = 2, base: int = 64, levels: int = 4) -> None:
        super().__init__()
        widths = [base * 2**i for i in range(levels + 1)]
        self.down = nn.ModuleList(_DoubleConv(a, b) for a, b in zip([3, *widths[:-2]], widths[:-1], strict=True))
        self.middle = _DoubleConv(widths[-2], widths[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(w, w // 2, 2, stride=2) for w in widths[:0:-1])
        self.merge = nn.ModuleList(_DoubleConv(w, w // 2) for w in widths[:0:-1])
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x, skips = images, []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = functional.max_pool2d(x, 2)
        x = self.middle(x)
        for up, merge, skip in zip(self.up, self.merge, reversed(skips), strict=True):
            x = merge(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


class _Experts(nn.Module):  # type: ignore[misc, unused-ignore]
    """Top-1 routing with a fixed capacity: each expert takes its `capacity` best tokens, so every shape is static."""

    def __init__(self, hidden: int, ffn: int, experts: int, factor: float) -> None:
        super().__init__()
        self.factor, self.count = factor, experts
        self.router = nn.Linear(hidden, experts, bias=False)
        self.up = nn.ModuleList(nn.Linear(hidden, ffn, bias=False) for _ in range(experts))
        self.down = nn.ModuleList(nn.Linear(ffn, hidden, bias=False) for _ in range(experts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.flatten(0, 1)
        capacity = max(1, int(self.factor * tokens.shape[0] / self.count))
        share, chosen = self.router(tokens).softmax(-1).topk(capacity, dim=0)
        parts = []
        for i, (up, down) in enumerate(zip(self.up, self.down, strict=True)):
            parts.append(down(functional.gelu(up(tokens[chosen[:, i]]))) * share[:, i, None])
        return torch.zeros_like(tokens).index_add(0, chosen.t().flatten(), torch.cat(parts)).view_as(x)


class _Block(nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self, hidden: int, heads: int, ffn: int, experts: int, factor: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.experts = _Experts(hidden, ffn, experts, factor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, h)
        x = x + self.proj(y)
        return x + self.experts(self.norm2(x))


class MoE(nn.Module):  # type: ignore[misc, unused-ignore]
    """Decoder with a mixture of experts in every layer."""

    def __init__(
        self, layers: int = 12, hidden: int = 1024, heads: int = 16, ffn: int = 4096, experts: int = 8,
        vocab: int = 50304, positions: int = 2048, factor: float = 1.25,
    ) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)
        self.layers = nn.ModuleList(_Block(hidden, heads, ffn, experts, factor) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocab, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        where = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embed(tokens) + self.position(where)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
