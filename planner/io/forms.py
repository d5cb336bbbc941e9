"""The four file formats as types: what a file may hold, member by member.

The exported JSON schemas are made from these, the readers take the known members from them, and a sound graph is read
through them in one go. What they cannot say (names that must exist, orders) is said by the readers, which also make the
error messages.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

__all__ = [
    "Claim", "ComputeForm", "GraphFile", "LinkForm", "MachineFile", "OpForm", "PlacementForm", "PlanFileForm",
    "ProblemFile", "RulesForm", "TensorForm", "TierForm", "members",
]

_NUMBER = r"^\s*\+?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
_BYTES = "([kKMGTPE]|[KMGTPE]i)?B"


def _quantity(unit: str) -> Meta:
    return Meta(pattern=f"{_NUMBER}{unit}\\s*$|^\\s*\\d[\\d_]*\\s*$")


_Whole = Annotated[int, Meta(ge=0, le=2**62)]
_Count = Annotated[int, Meta(ge=0)]
Size = _Whole | Annotated[str, _quantity(_BYTES)]
Duration = _Whole | Annotated[str, _quantity("(ns|us|µs|μs|ms|s|min)")]
Bandwidth = Annotated[int, Meta(ge=1, le=2**62)] | Annotated[str, _quantity(f"{_BYTES}/s")]
Rate = Annotated[int, Meta(ge=1, le=2**62)] | Annotated[str, _quantity("[kKMGTPE]?FLOP(S|/s)")]
_Ratio = Annotated[str, Meta(pattern=r"^[0-9]{1,40}(\.[0-9]{1,40}|/[0-9]{1,40})?$")]
Factor = Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)] | _Ratio
Names = tuple[str, ...]


class TensorForm(Struct, forbid_unknown_fields=True, gc=False):
    """One storage, or another name of one. Sizes are bytes."""

    name: str
    size: Size
    home: Names | Literal["any"] | None = ()
    keep: str | None = None
    kind: str = ""
    alias_of: str | None = None


class PlacementForm(Struct, forbid_unknown_fields=True):
    """Duration of an op with some operands in place on other tiers."""

    at: dict[str, str]
    duration: Duration


class OpForm(Struct, forbid_unknown_fields=True, gc=False):
    """One kernel. Durations are nanoseconds; null: roofline from flops and bytes."""

    name: str
    reads: Names = ()
    writes: Names = ()
    updates: Names = ()
    duration: Duration | None = None
    workspace: Size = 0
    stream: str = "compute"
    recomputable: bool = True
    after: Names = ()
    placements: tuple[PlacementForm, ...] = ()
    flops: _Count | None = None
    bytes: _Count | None = None
    dtype: str | None = None


class GraphFile(Struct, forbid_unknown_fields=True):
    """A static dataflow graph; ops in topological order."""

    format: Literal["planner-graph/1"]
    tensors: list[TensorForm]
    ops: list[OpForm]
    name: str = "graph"


class TierForm(Struct, forbid_unknown_fields=True):
    """One memory; the first tier is where ops compute. Capacity null: unbounded."""

    name: str
    capacity: Size | None = None
    reserve: Size = 0
    granule: Size = 1
    direct: bool = False
    direct_bandwidth: Bandwidth | None = None


class LinkForm(Struct, forbid_unknown_fields=True):
    """A directed way for copies; links that name one channel share it."""

    src: str
    dst: str
    bandwidth: Bandwidth
    latency: Duration = 0
    channel: str = ""


class ComputeForm(Struct, forbid_unknown_fields=True):
    """Speed of the tier where ops compute."""

    flops: dict[str, Rate] = {}
    memory_bandwidth: Bandwidth | None = None
    efficiency: Factor = 1
    launch: Duration = 0


class MachineFile(Struct, forbid_unknown_fields=True):
    """Tiers, links and compute speed."""

    format: Literal["planner-machine/1"]
    tiers: Annotated[list[TierForm], Meta(min_length=1)]
    links: list[LinkForm] = []
    name: str = "machine"
    compute: ComputeForm | None = None
    notes: dict[str, str] = {}


class RulesForm(Struct, forbid_unknown_fields=True, frozen=True):
    """What a plan may do."""

    offload: bool = True
    recompute: bool = False
    reorder: bool = False
    split: bool = False
    direct: bool = False
    pin: dict[str, str] = {}
    chunk: Size | UnsetType = UNSET


class ProblemFile(Struct, forbid_unknown_fields=True):
    """A graph on a machine, under budgets and rules, for an objective. Paths are relative to the file."""

    format: Literal["planner-problem/1"]
    graph: GraphFile | str
    machine: MachineFile | str
    budgets: dict[str, Size] = {}
    rules: RulesForm = RulesForm()
    objective: Literal["makespan", "peak"] = "makespan"
    max_slowdown: Factor | None = None
    max_makespan: Duration | None = None


class ScopeForm(Struct):
    """What the bound holds for."""

    order: Literal["fixed", "free"]
    recompute: bool
    split: bool
    tiers: Names


class BudgetNeedForm(Struct):
    """The least budget of one tier, bytes."""

    value: int | None
    lower_bound: int
    proved: bool


class WitnessForm(Struct):
    """The op and tensors that set the least budget; op null: what starts or must end on the tier."""

    op: str | None
    tensors: dict[str, int]
    bytes: int
    tier: str


class Claim(Struct):
    """What is claimed for a plan; times are nanoseconds, gap a fraction of the bound."""

    status: Literal["optimal", "feasible", "infeasible", "unknown"] | UnsetType = UNSET
    makespan_ns: int | None = None
    lower_bound_ns: int | None = None
    lower_bound_bytes: int | None = None
    gap: float | None = None
    ideal_ns: int | None = None
    peak_bytes: dict[str, int] = {}
    moved_bytes: dict[str, int] = {}
    recomputed_ns: int = 0
    stall_ns: int = 0
    method: str = ""
    scope: ScopeForm | None = None
    message: str = ""
    ties_proved: bool = False
    minimum_budget_bytes: dict[str, BudgetNeedForm] = {}
    witness: WitnessForm | None = None


def _row(kind: str, *rest: dict[str, Any], least: int) -> dict[str, Any]:
    return {"type": "array", "prefixItems": [{"const": kind}, *rest], "items": False, "minItems": least}


_NAME: dict[str, Any] = {"type": "string"}
_PLACES: dict[str, Any] = {"type": "object", "additionalProperties": _NAME}
_INSTRUCTIONS = {"items": {"anyOf": [
    _row("run", _NAME, _PLACES, least=2), _row("copy", _NAME, _NAME, _NAME, least=4),
    _row("drop", _NAME, _NAME, least=3),
]}}


class PlanFileForm(Struct, forbid_unknown_fields=True):
    """A program with its claim. Program null: there is none (infeasible or unknown)."""

    format: Literal["planner-plan/1"]
    problem: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    program: Annotated[list[Any], Meta(extra_json_schema=_INSTRUCTIONS)] | None
    start: dict[str, str] = {}
    claim: Claim | UnsetType = UNSET
    provenance: dict[str, Any] = {}


def members(form: type[Struct]) -> tuple[str, ...]:
    """Return the members that a form knows, for the readers."""
    return form.__struct_fields__
