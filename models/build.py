"""Rebuild the bundled graphs: ``python models/build.py llama3-8b-train`` or ``python models/build.py`` for all.

Needs torch and transformers. Equal versions give equal bytes; index.json records the versions, hashes and counts.
``--check`` rebuilds without writing and fails if a hash differs.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from planner.capture import capture_named
from planner.graph import Graph
from planner.io import save_graph

HERE = Path(__file__).resolve().parent

#: name → (description, source, options of `capture_named`).
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2-train": ("GPT-2 124M, 8 × 1024 tokens, bf16, forward and backward", "gpt2", {"batch": 8, "seq": 1024}),
    "gpt2-xl-train": ("GPT-2 XL 1.5B, 8 × 1024 tokens, bf16, forward and backward", "gpt2-xl",
                      {"batch": 8, "seq": 1024}),
    "llama3-8b-train": ("Llama 3 8B, 1 × 8192 tokens, bf16, forward and backward", "llama3-8b",
                        {"batch": 1, "seq": 8192}),
    "llama3-8b-train-adamw": (
        "Llama 3 8B, 1 × 4096 tokens, bf16 with fp32 master weights and AdamW", "llama3-8b",
        {"batch": 1, "seq": 4096, "optimizer": "adamw", "master_weights": True}),
    "llama3-8b-prefill": ("Llama 3 8B, prefill of 4 × 8192 tokens, bf16", "llama3-8b",
                          {"mode": "prefill", "batch": 4, "seq": 8192}),
    "llama3-8b-decode": ("Llama 3 8B, one token for 32 sequences of 8192, bf16", "llama3-8b",
                         {"mode": "decode", "batch": 32, "seq": 8192}),
    "bert-base-train": ("BERT base, 64 × 512 tokens, bf16, forward and backward with dropout", "bert-base",
                        {"batch": 64, "seq": 512}),
    "vit-b-train": ("ViT-B/16, 256 images, bf16, forward and backward", "vit-b", {"batch": 256}),
    "resnet50-train": ("ResNet-50, 256 images, fp32, forward and backward", "resnet50",
                       {"batch": 256, "dtype": "fp32"}),
    "vgg19-train": ("VGG-19, 256 images, fp32, forward and backward", "vgg19", {"batch": 256, "dtype": "fp32"}),
    "unet-train": ("U-Net, 16 images of 512 × 512, bf16, forward and backward", "unet", {"batch": 16, "seq": 512}),
    "moe-train": ("Decoder of 12 layers with 8 experts each, 8 × 1024 tokens, bf16, forward and backward", "moe",
                  {"batch": 8, "seq": 1024}),
}


def build(name: str) -> Graph:
    """Capture one bundled model."""
    _, source, options = MODELS[name]
    return capture_named(source, name=name, **options)


def entry(name: str, graph: Graph) -> dict[str, Any]:
    """Return the index entry of a graph."""
    import torch
    import transformers

    return {
        "file": f"{name}.json.gz", "sha256": graph.sha256, "ops": len(graph.ops), "tensors": len(graph.tensors),
        "description": MODELS[name][0], "command": f"python models/build.py {name}",
        "versions": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__},
    }


def main(arguments: list[str] | None = None) -> int:
    """Rebuild the named models, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--check", action="store_true", help="compare hashes and write nothing")
    options = parser.parse_args(arguments)
    unknown = [n for n in options.names if n not in MODELS]
    if unknown:
        parser.error(f"unknown models: {', '.join(unknown)}")
    place = HERE / "index.json"
    index = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
    differ: list[str] = []
    for name in options.names or MODELS:
        start = time.process_time()
        graph = build(name)
        spent = time.process_time() - start
        if options.check:
            if graph.sha256 != index.get(name, {}).get("sha256"):
                differ.append(name)
        else:
            index[name] = entry(name, graph)
            save_graph(graph, HERE / f"{name}.json.gz")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{name}: {len(graph.ops)} ops, {len(graph.tensors)} tensors, {spent:.1f} CPU s, peak RSS {peak} MiB, "
              f"sha256 {graph.sha256[:12]}", flush=True)
    if not options.check:
        place.write_text(json.dumps(dict(sorted(index.items())), indent=1) + "\n", encoding="utf-8")
    for name in differ:
        print(f"{name}: hash differs from index.json", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
