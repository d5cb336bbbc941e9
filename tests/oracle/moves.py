"""What may be appended to a program: the literal rules of the execution model, one instruction at a time.

A *key* is ``(done, present, spoiled)``: bit masks of ops that have run, of copies that exist and of pinned tensors
whose copy was dropped after use. All copies of a tensor have one version, the number of updates that have run.

A *label* is a flat tuple of times::

    [0] largest end so far     [1] now: nothing may start earlier (0 where lists need not be chronological)
    streams   end of the last Run           channels  end of the last Copy
    tiers     latest end of a Drop          after     end of the latest Run of each op that some `after` names
    produced  per copy                      used      per copy: end of its users, creation included

A move appends the drops that it needs, then one Run or Copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tests.oracle.model import Model

Key = tuple[int, int, int]
Label = tuple[int, ...]
Code = tuple[int, ...]


@dataclass(frozen=True)
class Needs:
    """Pairs (tensor, version): what ``may`` and what ``must`` yet be used, and what is written ``beside`` by reruns."""

    may: frozenset[tuple[int, int]]
    must: frozenset[tuple[int, int]]
    beside: frozenset[tuple[int, int]]
    reruns: tuple[int, ...]


class Moves:
    """Successors for one model and one choice of start tiers."""

    def __init__(self, model: Model, start: tuple[int, ...], chronological: bool) -> None:
        m = self.m = model
        self.start, self.chronological = start, chronological
        self.keep = model.keep_tiers(start)
        self.leaves = [model.leaves(tiers) for tiers in self.keep]
        self.at_stream = 2
        self.at_channel = 2 + m.S
        self.at_drop = self.at_channel + m.C
        self.at_after = self.at_drop + m.K
        self.at_made = self.at_after + len(m.after_ops)
        self.at_used = self.at_made + m.T * m.K
        self.width = self.at_used + m.T * m.K
        self.after_slot = {o: self.at_after + i for i, o in enumerate(m.after_ops)}
        #: Copies whose `used` can ever matter: they may be dropped for room, or an update waits for them.
        self.tracked = [m.cap[c % m.K] is not None or m.updated[c // m.K] for c in range(m.T * m.K)]
        self.all_done = (1 << len(m.ops)) - 1
        self._needed: dict[int, Needs] = {}

    def initial(self) -> tuple[Key, Label, tuple[Code, ...]] | None:
        """Return the state before the first instruction, and copies released at once; None if a tier overflows."""
        m, present = self.m, 0
        for t in range(m.T):
            homes = m.homes[t]
            for k in (self.start[t],) if homes is None else homes:
                present |= 1 << (t * m.K + k)
        for k in range(m.K):
            if m.cap[k] is not None and self.room_used(present, k) > m.cap[k]:  # type: ignore[operator]
                return None
        return self.settle(0, present, 0, [0] * self.width)

    def room_used(self, present: int, k: int) -> int:
        """Return the bytes occupied on tier k."""
        m = self.m
        return sum(m.occ[c] for c in range(k, m.T * m.K, m.K) if present >> c & 1)

    def finished(self, key: Key) -> bool:
        """Have all ops run, and does `keep` hold?"""
        m = self.m
        done, present, _ = key
        return done == self.all_done and all(
            tiers is None or any(present >> (t * m.K + k) & 1 for k in tiers) for t, tiers in enumerate(self.keep)
        )

    def version(self, t: int, done: int) -> int:
        """Return the number of updates of tensor t that have run."""
        return (done & self.m.updaters[t]).bit_count()

    def needed(self, done: int) -> Needs:
        """Return what programs from here on may use, given the ops that have run."""
        if done in self._needed:
            return self._needed[done]
        m = self.m
        need = {(t, m.final[t]) for t, k in enumerate(self.keep) if k is not None}
        for i, op in enumerate(m.ops):
            if not done >> i & 1:
                need.update(op.reads)
        must = frozenset(need)
        beside: set[tuple[int, int]] = set()
        reruns: list[int] = []
        grown = m.recompute
        while grown:
            grown = False
            for i, op in enumerate(m.ops):
                if op.rerun and i not in reruns and any((t, 0) in need for t in op.writes):
                    reruns.append(i)
                    need.update(op.reads)
                    beside.update((t, 0) for t in op.writes)
                    grown = True
        found = Needs(frozenset(need), must, frozenset(beside), tuple(sorted(reruns)))
        self._needed[done] = found
        return found

    def settle(
        self, done: int, present: int, spoiled: int, label: list[int]
    ) -> tuple[Key, Label, tuple[Code, ...]]:
        """Normalise a state: raise times that are over to a common floor, release dead copies where that is free."""
        m, n = self.m, self.m.T * self.m.K
        floor = label[1] if self.chronological else self._floor(done, label)
        needs = self.needed(done)
        released: list[Code] = []
        made, used = self.at_made, self.at_used
        for c in range(n):
            if not present >> c & 1:
                label[made + c] = label[used + c] = floor
                continue
            if not self.tracked[c]:
                label[used + c] = floor
            t, k = divmod(c, m.K)
            version = self.version(t, done)
            if (t, version) in needs.may or (not self.chronological and (t, version) in needs.beside):
                continue
            if not self.tracked[c]:  # no room to win: forgotten, not dropped (a Drop would delay what comes after it)
                present &= ~(1 << c)
                label[made + c] = label[used + c] = floor
                continue
            over = label[used + c] <= max(floor, label[self.at_drop + k])
            if over and (t not in m.pinned or self._unpinned(t, done)):
                present &= ~(1 << c)
                label[made + c] = label[used + c] = floor
                released.append((2, c))
        top = label[0]
        out = [x if x > floor else floor for x in label]
        out[0] = top
        return (done, present, spoiled), tuple(out), tuple(released)

    def _floor(self, done: int, label: list[int]) -> int:
        """Return a time before which nothing that is still to come can start, whatever the order of the list."""
        m, low = self.m, None
        for i, op in enumerate(m.ops):
            if op.rerun or not done >> i & 1:
                x = label[self.at_stream + op.stream]
                low = x if low is None or x < low else low
        for j in range(m.C):
            x = label[self.at_channel + j]
            low = x if low is None or x < low else low
        return low or 0

    def _unpinned(self, t: int, done: int) -> bool:
        """Has no op that is still to run for the first time a use of pinned tensor t?"""
        return all(done >> i & 1 or (t not in op.writes and all(t != r for r, _ in op.reads))
                   for i, op in enumerate(self.m.ops))

    # --- successors ------------------------------------------------------------------------------------------------

    def successors(self, key: Key, label: Label) -> Iterator[tuple[Key, Label, tuple[Code, ...], int]]:
        """Yield (key, label, instructions, bytes moved) for every useful next instruction."""
        m = self.m
        done, present, _ = key
        needs = self.needed(done)
        for i, op in enumerate(m.ops):
            if done >> i & 1:
                continue
            if (op.before_first >= 0 and not done >> op.before_first & 1) or any(not done >> a & 1 for a in op.after):
                continue
            yield from self._runs(i, key, label)
        for i in needs.reruns:
            if done >> i & 1:
                yield from self._runs(i, key, label)
        for w, way in enumerate(m.ways):
            for t in range(m.T):
                c, d = t * m.K + way.src, t * m.K + way.dst
                if not present >> c & 1:
                    continue
                if present >> d & 1 or (t, self.version(t, done)) not in needs.may:
                    continue
                if way.src == 0 and not m.offload and way.dst not in self.leaves[t]:
                    continue
                for dropped in self._drops(key, {way.dst: m.occ[d]}, 1 << c, 0):
                    out = list(label)
                    present2, spoiled2, codes = self._apply_drops(key, out, dropped)
                    at = self.at_channel + way.channel
                    begin = max(out[at], out[self.at_made + c], out[self.at_drop + way.dst])
                    end = begin + way.time[t]
                    out[at] = end
                    out[self.at_used + c] = max(out[self.at_used + c], end)
                    out[self.at_made + d] = out[self.at_used + d] = end
                    new = self._close(done, present2 | 1 << d, spoiled2, out, begin, end)
                    yield new[0], new[1], (*codes, (1, w, t), *new[2]), m.size[t]

    def _close(
        self, done: int, present: int, spoiled: int, out: list[int], begin: int, end: int
    ) -> tuple[Key, Label, tuple[Code, ...]]:
        out[0] = max(out[0], end)
        if self.chronological:
            out[1] = begin
        return self.settle(done, present, spoiled, out)

    def _runs(self, i: int, key: Key, label: Label) -> Iterator[tuple[Key, Label, tuple[Code, ...], int]]:
        m = self.m
        done, present, spoiled = key
        op = m.ops[i]
        again = done >> i & 1
        if any(self.version(t, done) != version for t, version in op.reads):
            return
        if spoiled and any(spoiled >> t & 1 for t in (*op.writes, *(t for t, _ in op.reads))):
            return
        for index, mode in enumerate(op.modes):
            operands, alone = 0, 0
            for t, _ in op.reads:
                c = t * m.K + mode.tier.get(t, 0)
                operands |= 1 << c
                if t in op.updates:
                    alone |= (((1 << m.K) - 1) << t * m.K) & present & ~(1 << c)
            if operands & ~present:
                continue
            held, fresh = operands, []
            wants: dict[int, int] = {}
            for t in op.writes:
                c = t * m.K + mode.tier.get(t, 0)
                if present >> c & 1:
                    held |= 1 << c
                else:
                    fresh.append(c)
                    wants[c % m.K] = wants.get(c % m.K, 0) + m.occ[c]
            if again and (not fresh or any(self.version(c // m.K, done) for c in fresh)):
                continue
            for dropped in self._drops(key, wants, held, alone):
                yield self._run(i, index, key, label, fresh, wants, dropped)

    def _run(
        self, i: int, index: int, key: Key, label: Label, fresh: list[int], wants: dict[int, int], dropped: int
    ) -> tuple[Key, Label, tuple[Code, ...], int]:
        m, op = self.m, self.m.ops[i]
        mode, done = op.modes[index], key[0]
        out = list(label)
        present, spoiled, codes = self._apply_drops(key, out, dropped)
        begin = out[self.at_stream + op.stream]
        made, used = self.at_made, self.at_used
        updated = []
        for t, _ in op.reads:
            c = t * m.K + mode.tier.get(t, 0)
            begin = max(begin, out[made + c])
            if t in op.updates:
                begin = max(begin, out[used + c])
                updated.append(c)
        for a in op.after:
            begin = max(begin, out[self.after_slot[a]])
        for k in wants:
            begin = max(begin, out[self.at_drop + k])
        end = begin + mode.duration
        out[self.at_stream + op.stream] = end
        if i in self.after_slot:
            out[self.after_slot[i]] = end
        for t, _ in op.reads:
            c = t * m.K + mode.tier.get(t, 0)
            out[used + c] = max(out[used + c], end)
        for c in updated:
            out[made + c] = out[used + c] = end
        for c in fresh:
            out[made + c] = out[used + c] = end
            present |= 1 << c
        new = self._close(done | 1 << i, present, spoiled, out, begin, end)
        return new[0], new[1], (*codes, (0, i, index), *new[2]), 0

    def _apply_drops(self, key: Key, out: list[int], dropped: int) -> tuple[int, int, list[Code]]:
        m = self.m
        done, present, spoiled = key
        codes: list[Code] = []
        c = 0
        rest = dropped
        while rest:
            if rest & 1:
                t, k = divmod(c, m.K)
                out[self.at_drop + k] = max(out[self.at_drop + k], out[self.at_used + c])
                codes.append((2, c))
                if m.pinned.get(t) == k and self._touched(t, done):
                    spoiled |= 1 << t
            rest >>= 1
            c += 1
        return present & ~dropped, spoiled, codes

    def _touched(self, t: int, done: int) -> bool:
        """Has some op used pinned tensor t?"""
        return any(done >> i & 1 and (t in op.writes or any(t == r for r, _ in op.reads))
                   for i, op in enumerate(self.m.ops))

    def _drops(self, key: Key, wants: dict[int, int], held: int, forced: int) -> Iterator[int]:
        """Yield the masks of drops before an instruction: those forced, and inclusion-minimal sets that make room."""
        m = self.m
        present = key[1] & ~forced
        per_tier: list[list[int]] = []
        for k, bytes_ in wants.items():
            cap = m.cap[k]
            short = 0 if cap is None else self.room_used(present, k) + bytes_ - cap
            if short <= 0:
                continue
            options = self._minimal(key, present, k, short, held)
            if not options:
                return
            per_tier.append(options)
        for choice in itertools.product(*per_tier):
            mask = forced
            for part in choice:
                mask |= part
            if self._survives(key, mask):
                yield mask

    def _minimal(self, key: Key, present: int, k: int, short: int, held: int) -> list[int]:
        m = self.m
        found: list[int] = []
        items = [c for c in range(k, m.T * m.K, m.K)
                 if present >> c & 1 and not held >> c & 1 and m.occ[c] > 0 and self._droppable(key, c)]
        for r in range(1, len(items) + 1):
            for chosen in itertools.combinations(items, r):
                total = sum(m.occ[c] for c in chosen)
                if total >= short and all(total - m.occ[c] < short for c in chosen):
                    mask = 0
                    for c in chosen:
                        mask |= 1 << c
                    found.append(mask)
        return found

    def _droppable(self, key: Key, c: int) -> bool:
        m = self.m
        t, k = divmod(c, m.K)
        return m.pinned.get(t) != k or not self._touched(t, key[0]) or self._unpinned(t, key[0])

    def _survives(self, key: Key, mask: int) -> bool:
        """Can what must still be used be had after these drops: another copy, or a rerun of its producer?"""
        m = self.m
        done, present, _ = key
        must = self.needed(done).must
        left = present & ~mask
        for c in range(m.T * m.K):
            if not mask >> c & 1:
                continue
            t = c // m.K
            version = self.version(t, done)
            if (t, version) not in must or left >> t * m.K & ((1 << m.K) - 1):
                continue
            if version or m.producer[t] < 0 or not m.ops[m.producer[t]].rerun:
                return False
        return True
