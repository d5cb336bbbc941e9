"""Resolve aliases: every name of a storage becomes the storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.errors import Fault
from planner.graph import Op, Placement, Tensor

__all__ = ["merge_aliases"]

_PROTECTED = frozenset({"input", "output"})


def merge_aliases(
    tensors: Sequence[Tensor], ops: Sequence[Op], faults: list[Fault]
) -> tuple[list[Tensor], list[Op]]:
    """Return storages, and ops on storages.

    Home and keep of the aliases are merged into the storage. A write to a name of a storage that exists by then changes
    it in place: it becomes an update, and the names that held the old content may not be read any more. ``reads`` of
    the result includes ``updates``, and an op with updates is not recomputable.

    Parameters
    ----------
    tensors, ops : sequence
        Of a valid graph.
    faults : list of Fault
        Findings are appended.
    """
    storages = _storages(tensors, faults)
    if len(storages) == len(tensors):
        return list(tensors), [_direct(op) for op in ops]
    root = {t.name: t.alias_of or t.name for t in tensors}
    live = {t.name for t in storages.values() if t.home}
    stale: dict[str, str] = {}
    written: dict[str, set[str]] = {}
    out: list[Op] = []
    for i, op in enumerate(ops):
        for n in (*op.reads, *op.updates):
            if n in stale:
                faults.append(Fault(f"graph.ops[{i}].reads", f"op {op.name!r} reads {n!r} after {stale[n]!r} overwrote it in "
                                    "place"))
            elif root[n] not in live:
                faults.append(Fault(f"graph.ops[{i}].reads", f"op {op.name!r} reads {n!r} of storage {root[n]!r}, which has "
                                    "no home and was not written before"))
        updates = dict.fromkeys(root[n] for n in op.updates)
        faults += [_protected(i, op, n, storages[root[n]]) for n in op.updates
                   if n != root[n] and storages[root[n]].kind in _PROTECTED]
        writes: dict[str, None] = {}
        for n in op.writes:
            r = root[n]
            if r in live:
                if storages[r].kind in _PROTECTED:
                    faults.append(_protected(i, op, n, storages[r]))
                updates[r] = None
                stale.update(dict.fromkeys((written.get(r, set()) | {r}) - {n}, op.name))
            else:
                writes[r] = None
            written.setdefault(r, set()).add(n)
        live.update(writes)
        placements = tuple(
            Placement(tuple(sorted({(root[n], tier) for n, tier in p.at})), p.duration) for p in op.placements
        )
        reads = tuple(dict.fromkeys((*(root[n] for n in op.reads), *updates)))
        out.append(_op(op, reads, tuple(writes), tuple(updates), placements))
    for i, listed in enumerate(tensors):
        t = storages.get(listed.name)
        if t is None or t.keep is None:
            continue
        if t.name not in live:
            faults.append(Fault(f"graph.tensors[{i}].keep", f"{t.name!r} is kept but no op writes it and it has no home"))
        elif t.keep == "home" and not t.home:
            faults.append(Fault(f"graph.tensors[{i}].keep", f"'home' needs a home, and no name of storage {t.name!r} has "
                                "one"))
    return list(storages.values()), out


def _storages(tensors: Sequence[Tensor], faults: list[Fault]) -> dict[str, Tensor]:
    merged = {t.name: t for t in tensors if t.alias_of is None}
    for i, t in enumerate(tensors):
        if t.alias_of is None:
            continue
        base = merged[t.alias_of]
        home, keep = base.home, base.keep
        if t.home and home != t.home:
            if home and "any" in (home, t.home):
                faults.append(Fault(f"graph.tensors[{i}].home", f"{t.home!r} of {t.name!r} conflicts with {home!r} of "
                                    f"its storage {base.name!r}"))
            else:
                home = t.home if not home else tuple(dict.fromkeys((*home, *t.home)))
        if t.keep is not None and keep not in (None, t.keep):
            faults.append(Fault(f"graph.tensors[{i}].keep", f"{t.keep!r} of {t.name!r} conflicts with {keep!r} of its "
                                f"storage {base.name!r}"))
        # an output that is the last name of a storage changed in place does not protect the earlier content
        kind = base.kind or ("" if t.kind in _PROTECTED else t.kind)
        merged[base.name] = replace(base, home=home, keep=keep or t.keep, kind=kind)
    return merged


def _protected(i: int, op: Op, name: str, storage: Tensor) -> Fault:
    return Fault(f"graph.ops[{i}].{'writes' if name in op.writes else 'updates'}",
                 f"{name!r} overwrites the protected {storage.kind} {storage.name!r} in place")


def _direct(op: Op) -> Op:
    """Lower an op of a graph without aliases; most need no change."""
    if not op.updates and len(set(op.reads)) == len(op.reads) and len(op.writes) < 2 and len(op.after) < 2:
        return op
    distinct = dict.fromkeys
    return _op(op, tuple(distinct((*op.reads, *op.updates))), tuple(distinct(op.writes)), tuple(distinct(op.updates)),
               op.placements)


def _op(op: Op, reads: tuple[str, ...], writes: tuple[str, ...], updates: tuple[str, ...],
        placements: tuple[Placement, ...]) -> Op:
    return replace(op, reads=reads, writes=writes, updates=updates, placements=placements,
                   recomputable=op.recomputable and not updates, after=tuple(dict.fromkeys(op.after)))
