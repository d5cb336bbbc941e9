"""A lower bound on the makespan of every program that starts with a given prefix.

Longest path over the ops that have not run, with streams, the earliest time each operand can be on the device, and the
copies that `keep` still demands; and, where one channel serves all links into the device, the copies that must cross
it one after the other, each followed by what needs it (the one-machine bound with tails).
"""

from __future__ import annotations

from tests.oracle.moves import Key, Label, Moves


class Bound:
    """Bounds for the states of one `Moves`."""

    def __init__(self, moves: Moves) -> None:
        self.v = moves
        m = self.m = moves.m
        far = 1 << 60
        #: distance[t][a][b]: least time of copies that bring tensor t from tier a to tier b
        self.distance: list[list[list[int]]] = []
        for t in range(m.T):
            d = [[0 if a == b else far for b in range(m.K)] for a in range(m.K)]
            for way in m.ways:
                d[way.src][way.dst] = way.time[t]
            for x in range(m.K):
                for a in range(m.K):
                    for b in range(m.K):
                        d[a][b] = min(d[a][b], d[a][x] + d[x][b])
            self.distance.append(d)
        into = [w for w in m.ways if w.dst == 0]
        self.inbound = into[0].channel if into and len({w.channel for w in into}) == 1 else None
        self.load = [min((w.time[t] for w in into), default=0) for t in range(m.T)]
        # tail[o]: from the start of op o to the end of the program
        keep_after = [0] * m.T
        for t, tiers in enumerate(moves.keep):
            if tiers is not None:
                keep_after[t] = min(self.distance[t][0][k] for k in tiers) if not m.direct else 0
        self.keep_after = keep_after
        self.tail = [0] * len(m.ops)
        for i in reversed(range(len(m.ops))):
            op = m.ops[i]
            after = 0
            for t in (*op.writes, *op.updates):
                if t in op.updates and m.final[t] != next(v for r, v in op.reads if r == t) + 1:
                    continue
                if m.producer[t] == i and m.final[t] != 0 and t in op.writes:
                    continue
                after = max(after, keep_after[t])
            for j in range(i + 1, len(m.ops)):
                other = m.ops[j]
                linked = i in other.after or other.before_first == i or any(t in op.writes for t, _ in other.reads)
                linked = linked or any(t in op.updates and v > 0 for t, v in other.reads)
                if linked:
                    after = max(after, self.tail[j])
            self.tail[i] = op.least + after

    def makespan(self, key: Key, label: Label) -> int:
        """Return the bound, ns."""
        m, v = self.m, self.v
        done, present, _ = key
        best, now = label[0], label[1]
        stream = list(label[v.at_stream:v.at_stream + m.S])
        ends: dict[int, int] = {}
        loads: list[tuple[int, int]] = []
        listed: dict[int, int] = {}
        arrival: dict[int, int] = {}
        for i, op in enumerate(m.ops):
            if done >> i & 1:
                continue
            begin = stream[op.stream] if not m.reorder else label[v.at_stream + op.stream]
            for t, version in op.reads:
                maker = m.producer[t]
                if maker >= 0 and not done >> maker & 1:
                    begin = max(begin, ends.get(maker, 0))
                    continue
                if version > v.version(t, done):
                    continue  # an update is still to come; its own path covers it
                if t not in arrival:
                    arrival[t] = self._arrival(t, present, label, now)
                    if self.inbound is not None and self._must_load(t, present):
                        loads.append((t, 0))
                begin = max(begin, arrival[t])
                listed[t] = max(listed.get(t, 0), self.tail[i])
            for a in op.after:
                begin = max(begin, ends[a] if a in ends else label[v.after_slot[a]])
            end = begin + op.least
            ends[i] = end
            stream[op.stream] = max(stream[op.stream], end)
            if begin + self.tail[i] > best:
                best = begin + self.tail[i]
        if m.reorder:
            for s in range(m.S):
                left = sum(op.least for i, op in enumerate(m.ops) if op.stream == s and not done >> i & 1)
                best = max(best, label[v.at_stream + s] + left)
        if loads and self.inbound is not None:
            clock = max(now, label[v.at_channel + self.inbound])
            for t, _ in sorted(loads, key=lambda item: -listed[item[0]]):
                clock += self.load[t]
                if clock + listed[t] > best:
                    best = clock + listed[t]
        if not m.direct:
            for t, tiers in enumerate(v.keep):
                if tiers is None or (m.producer[t] >= 0 and not done >> m.producer[t] & 1):
                    continue
                if v.version(t, done) < m.final[t]:
                    continue
                here = [label[v.at_made + t * m.K + k] + min(self.distance[t][k][x] for x in tiers)
                        for k in range(m.K) if present >> (t * m.K + k) & 1]
                if here and min(here) > best and not (m.recompute and m.producer[t] >= 0):
                    best = min(here)
        return best

    def _must_load(self, t: int, present: int) -> bool:
        m = self.m
        if present >> (t * m.K) & 1 or m.direct:
            return False
        return not (m.recompute and m.producer[t] >= 0 and m.ops[m.producer[t]].rerun) and not m.updated[t]

    def _arrival(self, t: int, present: int, label: Label, now: int) -> int:
        m, v = self.m, self.v
        best = None
        for k in range(m.K):
            c = t * m.K + k
            if present >> c & 1:
                x = label[v.at_made + c] + (0 if m.direct else self.distance[t][k][0])
                best = x if best is None or x < best else best
        if m.recompute and m.producer[t] >= 0 and m.ops[m.producer[t]].rerun:
            op = m.ops[m.producer[t]]
            x = max(now, label[v.at_stream + op.stream]) + op.least
            best = x if best is None or x < best else best
        if best is None:
            return now
        return best

    def moved(self, key: Key) -> int:
        """Return a lower bound on the bytes that are still to move."""
        m = self.m
        done, present, _ = key
        total = 0
        if m.direct or any(m.updated) or m.recompute:
            return 0
        for t, tiers in enumerate(self.v.keep):
            maker = m.producer[t]
            if (maker < 0 or done >> maker & 1) and not present >> (t * m.K) & 1 and any(
                not done >> i & 1 and any(r == t for r, _ in op.reads) for i, op in enumerate(m.ops)
            ):
                total += m.size[t]
            if tiers is not None and not any(present >> (t * m.K + k) & 1 for k in tiers) and 0 not in tiers:
                total += m.size[t]
        return total
