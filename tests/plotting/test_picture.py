"""The picture itself, against a stored one. To store it anew: ``python -m tests.plotting.test_picture``."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from planner.errors import MissingDependencyError
from planner.program import Program, Run
from tests.plotting.plans import as_plan, offload_plan
from tests.toys import toy

mpl = pytest.importorskip("matplotlib")
mpl.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")

BASELINE = Path(__file__).with_name("baseline") / "offload.png"
#: Root mean square of the differences of pixels, 0 to 255: other fonts and versions move edges a little.
TOLERANCE = 12.0


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def draw() -> bytes:
    """Return the picture of the small plan."""
    buffer = io.BytesIO()
    with mpl.rc_context(mpl.rcParamsDefault | {"backend": "agg"}):
        figure = offload_plan().plot()
        figure.savefig(buffer, format="png", dpi=70, metadata={"Software": None})
    return buffer.getvalue()


def _pixels(data: bytes) -> np.ndarray:
    return np.asarray(plt.imread(io.BytesIO(data), format="png"))[..., :3] * 255


def test_picture_is_like_the_stored_one() -> None:
    now, stored = _pixels(draw()), _pixels(BASELINE.read_bytes())
    assert now.shape == stored.shape
    assert np.sqrt(((now - stored) ** 2).mean()) < TOLERANCE


def test_stored_picture_is_small() -> None:
    assert BASELINE.stat().st_size < 60_000


def test_the_comparison_sees_a_change() -> None:
    changed = _pixels(BASELINE.read_bytes()).copy()
    changed[40:110, 200:400] = 255 - changed[40:110, 200:400]
    assert np.sqrt(((changed - _pixels(BASELINE.read_bytes())) ** 2).mean()) > TOLERANCE


def test_axes_given_get_the_lanes_only() -> None:
    figure, ax = plt.subplots()
    assert offload_plan().plot(ax) is ax
    assert len(figure.axes) == 1
    assert [t.get_text() for t in ax.get_yticklabels()] == ["compute", "copies host>device", "copies device>host"]


def test_figure_has_a_panel_for_each_used_tier_and_the_budget_line() -> None:
    figure = offload_plan().plot()
    assert len(figure.axes) == 3
    texts = [t.get_text() for ax in figure.axes for t in ax.texts]
    assert texts == ["peak 10 B of budget 10 B (dashed)", "peak 8 B of budget 100 B (off scale)"]


def test_twenty_thousand_bars_are_quick() -> None:
    n = 20_000
    problem = toy("x=1@D", *(f"o{i}(1): {f'a{i - 1}' if i else 'x'} -> a{i}(0)" for i in range(n)), D=1)
    plan = as_plan(problem, Program(tuple(Run(f"o{i}") for i in range(n))))
    begin = time.perf_counter()
    plan.plot().savefig(io.BytesIO(), format="png", dpi=70)
    assert time.perf_counter() - begin < 15


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match="viz"):
        offload_plan().plot()


if __name__ == "__main__":
    BASELINE.parent.mkdir(exist_ok=True)
    BASELINE.write_bytes(draw())
