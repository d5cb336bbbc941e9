"""ONNX models: small ones made here, and the nine networks without weights that come with the onnx package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import CaptureError
from planner.io.onnx_import import import_onnx
from planner.presets import preset
from planner.problem import Problem

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
#: Forward operations, billions, as this import first counted them: a change of price shows. ResNet-50 (4.1 billion
#: multiply-adds) and VGG-19 (19.6) agree with the figures usually quoted.
NETWORKS = {"bvlc_alexnet": 1.3, "densenet121": 5.8, "inception_v1": 2.9, "inception_v2": 4.1, "resnet50": 8.3,
            "shufflenet": 0.28, "squeezenet": 0.71, "vgg19": 39.3, "zfnet512": 3.0}


def _save(
    folder: Path, nodes: list[Any], inputs: dict[str, list[Any]], weights: dict[str, list[int]],
    outputs: dict[str, Any],
    ints: dict[str, list[int]] | None = None,
) -> Path:
    """Write a model whose weights are of the form ConstantOfShape, without data."""
    shapes = [helper.make_tensor(f"{w}__SHAPE", TensorProto.INT64, [len(d)], d) for w, d in weights.items()]
    shapes += [helper.make_tensor(name, TensorProto.INT64, [len(d)], d) for name, d in (ints or {}).items()]
    fill = [helper.make_node("ConstantOfShape", [f"{w}__SHAPE"], [w],
                             value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0.0])) for w in weights]
    graph = helper.make_graph(
        [*fill, *nodes], "net", [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in outputs.items()], shapes)
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    return path


def _mlp(folder: Path, batch: Any = 4) -> Path:
    """x(4,8) → Gemm → Relu → Reshape → Gemm, with the first activation used twice."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], "g1"), helper.make_node("Relu", ["h"], ["r"], "relu1"),
        helper.make_node("Reshape", ["r", "s"], ["v"], "view"), helper.make_node("Gemm", ["v", "w2"], ["o"], "gemm2"),
        helper.make_node("Add", ["o", "h"], ["y"], "skip add"),
    ]
    return _save(folder, nodes, {"x": [batch, 8]}, {"w1": [8, 16], "b1": [16], "w2": [16, 16]}, {"y": None},
                 {"s": [-1, 16]})


def test_forward_sizes_homes_and_prices(tmp_path: Path) -> None:
    graph = import_onnx(_mlp(tmp_path), backward=False)
    assert [op.name for op in graph.ops] == ["Gemm.g1", "relu1", "gemm2", "skip add"]
    first = graph.ops[0]
    assert (first.reads, first.writes, first.dtype) == (("x", "w1", "b1"), ("h",), "fp32")
    assert first.flops == 2 * 4 * 16 * 8 + 4 * 16
    assert first.bytes == 4 * (4 * 8 + 8 * 16 + 16 + 4 * 16)
    assert (graph.tensor["x"].home, graph.tensor["x"].kind) == (("host",), "input")
    assert (graph.tensor["w1"].home, graph.tensor["w1"].keep, graph.tensor["w1"].size) == ("any", "home", 512)
    assert (graph.tensor["y"].kind, graph.tensor["y"].keep) == ("output", "device")


def test_a_view_is_the_storage_it_views(tmp_path: Path) -> None:
    graph = import_onnx(_mlp(tmp_path), backward=False)
    assert graph.op["gemm2"].reads == ("r", "w2")
    assert "v" not in graph.tensor
    assert "s" not in graph.tensor


def test_backward_reads_what_was_saved_and_adds_in_place(tmp_path: Path) -> None:
    graph = import_onnx(_mlp(tmp_path))
    assert [op.name for op in graph.ops[4:]] == ["loss", "bwd.skip add", "bwd.gemm2", "bwd.relu1", "bwd.Gemm.g1"]
    relu, gemm = graph.op["bwd.relu1"], graph.op["bwd.Gemm.g1"]
    assert set(relu.reads) == {"grad.r", "r"}
    assert relu.updates == ("grad.h",)
    assert not relu.recomputable
    assert set(gemm.reads) == {"grad.h", "x", "w1", "b1"}
    assert set(gemm.writes) == {"grad.w1", "grad.b1"}
    assert gemm.flops == 2 * (graph.op["Gemm.g1"].flops or 0)
    assert "grad.x" not in graph.tensor
    assert graph.tensor["grad.w1"].keep == "device"
    assert graph.tensor["loss"].keep == "device"


def test_batch_scales_what_comes_from_an_input(tmp_path: Path) -> None:
    one, many = import_onnx(_mlp(tmp_path)), import_onnx(_mlp(tmp_path), batch=12)
    for name in ("x", "h", "r", "y", "grad.h"):
        assert many.tensor[name].size == 3 * one.tensor[name].size, name
    for name in ("w1", "grad.w1"):
        assert many.tensor[name].size == one.tensor[name].size, name
    assert many.ops[0].flops == 3 * (one.ops[0].flops or 0)
    assert import_onnx(_mlp(tmp_path, "N"), batch=4).tensor == one.tensor


def test_optimizer_and_dtype(tmp_path: Path) -> None:
    graph = import_onnx(_mlp(tmp_path), optimizer="adamw", dtype="bf16")
    step = graph.op["step.w1"]
    assert step.updates == ("w1", "w1.state0", "w1.state1")
    assert graph.tensor["w1.state0"].home == "any"
    assert graph.tensor["grad.w1"].keep is None
    assert graph.tensor["w1"].size == 256
    assert {op.dtype for op in graph.ops} == {"bf16"}
    assert len(import_onnx(_mlp(tmp_path), optimizer="sgd").op["step.w1"].updates) == 1


def test_dropout_saves_a_mask_in_training_and_is_a_view_else(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], "mm"), helper.make_node("Dropout", ["h"], ["y"], "drop")]
    path = _save(tmp_path, nodes, {"x": [2, 8]}, {"w": [8, 8]}, {"y": None})
    graph = import_onnx(path)
    assert graph.tensor["y.mask"].size == 16
    assert "y.mask" in graph.op["bwd.Dropout.drop"].reads
    assert not graph.op["Dropout.drop"].recomputable
    assert [op.name for op in import_onnx(path, backward=False).ops] == ["MatMul.mm"]


def test_unknown_operator_names_operator_and_node(tmp_path: Path) -> None:
    nodes = [helper.make_node("Einsum", ["x", "w"], ["y"], "attn", equation="ij,jk->ik")]
    with pytest.raises(CaptureError, match=r"Einsum\.attn.*'Einsum' has no price"):
        import_onnx(_save(tmp_path, nodes, {"x": [2, 8]}, {"w": [8, 8]}, {"y": None}))


def test_options_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    path = _mlp(tmp_path)
    for options, message in (({"optimizer": "lion"}, "lion"), ({"dtype": "int4"}, "int4"), ({"batch": 0}, "at least 1"),
                             ({"optimizer": "sgd", "backward": False}, "without a backward")):
        with pytest.raises(CaptureError, match=message):
            import_onnx(path, **options)  # type: ignore[arg-type]


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "junk.onnx").write_bytes(b"\xff\xfe not a model")
    (tmp_path / "empty.onnx").write_bytes(b"")
    for name in ("junk.onnx", "empty.onnx", "missing.onnx"):
        with pytest.raises(CaptureError, match=name):
            import_onnx(tmp_path / name)
    with pytest.raises(CaptureError, match=r"dimension 1 \(L\)"):
        import_onnx(_save(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": [1, "L"]}, {}, {"y": None}))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_the_onnx_package(name: str) -> None:
    path = LIGHT / f"light_{name}.onnx"
    forward, graph = import_onnx(path, backward=False), import_onnx(path)
    assert sum(op.flops or 0 for op in forward.ops) / 1e9 == pytest.approx(NETWORKS[name], rel=0.02)
    weights = [t.name for t in graph.tensors if t.kind == "weight" and f"grad.{t.name}" in graph.tensor]
    assert all(graph.tensor[f"grad.{w}"].size == graph.tensor[w].size for w in weights)
    assert weights
    problem = Problem(graph, preset("t4-pcie3"))
    assert not problem.warnings
