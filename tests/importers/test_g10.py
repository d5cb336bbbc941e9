"""G10 traces: small tables with known meaning, and the four published iterations where they are at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from planner.errors import CaptureError
from planner.io.g10_import import import_g10

DATA = Path(__file__).parents[3] / "shared" / "data" / "g10"
#: kernels, tensors, sum of time_us in nanoseconds (each rounded up), bytes of weights as given and re-tagged
TRACES = {"BERT_Base_b256": (1369, 1463), "Inceptionv3_b1536": (929, 2171), "ResNet152_b1280": (1299, 3330),
          "VIT_b1280": (1489, 1563)}

KERNELS = """kernel_id,op,time_us,input_tensor_ids,output_tensor_ids
0,LoadData_A0,1.0001,,0
1,Linear_Forward,2.5,0 1,2 7
2,Add_Forward,0.001,2 3,4
3,makeLoss,1,4 8,5
4,Linear_Backward_Weight,1,5 0,6
5,Linear_Backward_Bias,1,5,6
6,Linear_Apply_Grad,1,6 1,1
"""
TENSORS = """tensor_id,size_bytes,is_global_weight
0,100,0
1,40,1
2,64,0
3,64,1
4,64,0
5,8,0
6,40,0
7,512,0
8,16,0
"""


def _write(folder: Path, kernels: str = KERNELS, tensors: str = TENSORS) -> tuple[Path, Path]:
    (folder / "toy.kernels.csv").write_text(kernels)
    (folder / "toy.tensors.csv").write_text(tensors)
    return folder / "toy.kernels.csv", folder / "toy.tensors.csv"


def test_times_are_exact_and_rounded_up(tmp_path: Path) -> None:
    graph = import_g10(*_write(tmp_path))
    assert graph.name == "toy"
    assert [op.duration for op in graph.ops] == [1001, 2500, 1, 1000, 1000, 1000, 1000]
    assert graph.ops[1].name == "k1.Linear_Forward"


def test_first_writer_creates_and_later_ones_update(tmp_path: Path) -> None:
    graph = import_g10(*_write(tmp_path))
    assert graph.op["k4.Linear_Backward_Weight"].writes == ("t6",)
    second = graph.op["k5.Linear_Backward_Bias"]
    assert (second.writes, second.updates, second.recomputable) == ((), ("t6",), False)
    step = graph.op["k6.Linear_Apply_Grad"]
    assert (step.reads, step.updates) == (("t6",), ("t1",))


def test_homes_and_kinds(tmp_path: Path) -> None:
    graph = import_g10(*_write(tmp_path))
    w, x, label, space, grad = (graph.tensor[n] for n in ("t1", "t0", "t8", "t7", "t6"))
    assert (w.home, w.keep, w.kind) == ("any", "home", "weight")
    assert (x.home, x.kind) == ((), "activation")
    assert (label.home, label.keep, label.kind) == (("host",), None, "input")
    assert space.kind == "workspace"
    assert grad.kind == "gradient"
    assert not graph.op["k0.LoadData_A0"].recomputable
    assert graph.op["k1.Linear_Forward"].recomputable
    assert import_g10(*_write(tmp_path), weights_home="host").tensor["t1"].home == ("host",)


def test_retag_takes_the_mark_from_batch_sized_tensors_only(tmp_path: Path) -> None:
    given, changed = import_g10(*_write(tmp_path)), import_g10(*_write(tmp_path), retag=True)
    assert given.tensor["t3"].keep == "home"
    assert (changed.tensor["t3"].home, changed.tensor["t3"].keep) == (("host",), None)
    assert changed.tensor["t1"] == given.tensor["t1"]


@pytest.mark.parametrize(("kernels", "tensors", "message"), [
    (KERNELS.replace("2.5", "fast"), TENSORS, r"kernels.csv:3: time_us 'fast'"),
    (KERNELS.replace("2 3,4", "2 99,4"), TENSORS, "kernel 2 names tensor 99"),
    (KERNELS, TENSORS.replace("40,1", "-4,1"), "size_bytes '-4'"),
    (KERNELS, TENSORS + "8,16,0\n", "tensor 8 is listed twice"),
    (KERNELS.replace("time_us", "time"), TENSORS, "no column time_us"),
    (KERNELS + "7,Op,1\n", TENSORS, "fields expected"),
])
def test_faults_name_file_and_line(tmp_path: Path, kernels: str, tensors: str, message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        import_g10(*_write(tmp_path, kernels, tensors))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"nowhere\.csv.*cannot be read"):
        import_g10(tmp_path / "nowhere.csv", _write(tmp_path)[1])


@pytest.mark.parametrize("name", TRACES)
def test_published_traces(name: str) -> None:
    if not DATA.exists():
        pytest.skip("no ../shared/data")
    files = DATA / f"{name}.kernels.csv", DATA / f"{name}.tensors.csv"
    graph, other = import_g10(*files), import_g10(*files, retag=True)
    assert (len(graph.ops), len(graph.tensors)) == TRACES[name]
    with files[0].open() as lines:
        assert sum(op.duration or 0 for op in graph.ops) == sum(
            round(float(row["time_us"]) * 1000) for row in csv.DictReader(lines))
    before, after = (sum(t.size for t in g.tensors if t.kind == "weight") for g in (graph, other))
    if name.startswith(("BERT", "VIT")):
        assert after < before / 10, "parameters broadcast over the batch lose the mark"
    else:
        assert other == graph
