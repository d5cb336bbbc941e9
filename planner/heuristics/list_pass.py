"""The pass of the list schedule in machine code. See `planner.heuristics.list_schedule` for what it does.

State of the pass: ``s`` holds counters (indices below); heaps of (key, item) for copies out by the start of their gap, copies
back by next use, copies on the device that may be dropped once they have left (``pend``, by time) and those that have left
(``gone``, farthest next use first; a dead tensor t is the item −t − 1), and spare copies on the backing tier.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["FAIL", "run_pass"]

FAIL = -1
_LEN, _DEV, _HOST, _PEAK, _OUT, _IN, _GONE, _PEND, _SPARE, _FREED_DEV, _FREED_HOST, _MOVED = range(12)


@numba.njit(cache=True)
def _push(keys, items, n, key, item):  # type: ignore[no-untyped-def]
    i = n
    while i > 0:
        up = (i - 1) >> 1
        if keys[up] < key or (keys[up] == key and items[up] <= item):
            break
        keys[i] = keys[up]
        items[i] = items[up]
        i = up
    keys[i] = key
    items[i] = item


@numba.njit(cache=True)
def _pop(keys, items, n):  # type: ignore[no-untyped-def]
    """Remove the top of a heap of n entries."""
    n -= 1
    key, item = keys[n], items[n]
    i = 0
    while True:
        c = 2 * i + 1
        if c >= n:
            break
        if c + 1 < n and (keys[c + 1] < keys[c] or (keys[c + 1] == keys[c] and items[c + 1] < items[c])):
            c += 1
        if keys[c] < key or (keys[c] == key and items[c] < item):
            keys[i] = keys[c]
            items[i] = items[c]
            i = c
        else:
            break
    keys[i] = key
    items[i] = item


@numba.njit(cache=True)
def _emit(code, s, kind, x, src, dst):  # type: ignore[no-untyped-def]
    i = s[_LEN]
    code[i, 0] = kind
    code[i, 1] = x
    code[i, 2] = src
    code[i, 3] = dst
    s[_LEN] = i + 1


@numba.njit(cache=True)
def _free_host(code, s, host_room, need, spare_k, spare_i, on_host, used_host, occ_host, wanted):  # type: ignore[no-untyped-def]
    """Drop copies on the backing tier that nobody needs until there is room."""
    while s[_HOST] + need > host_room and s[_SPARE] > 0:
        t = spare_i[0]
        _pop(spare_k, spare_i, s[_SPARE])
        s[_SPARE] -= 1
        if on_host[t] and wanted[t] == 0:
            _emit(code, s, 2, t, 1, 0)
            on_host[t] = False
            s[_FREED_HOST] = max(s[_FREED_HOST], used_host[t])
            s[_HOST] -= occ_host[t]
    return s[_HOST] + need <= host_room


@numba.njit(cache=True)
def _copy_out(code, s, out_k, out_i, out_state, out_for, tensor, chan, co, produced, used, on_host, produced_host,  # type: ignore[no-untyped-def]
              used_host, occ_host, host_room, out_time, size, open_gap, state, vac, pend_k, pend_i, spare_k, spare_i, wanted):
    """Copy the next waiting version out. Returns False if the backing tier has no room."""
    g = out_i[0]
    _pop(out_k, out_i, s[_OUT])
    s[_OUT] -= 1
    t = tensor[g]
    if out_state[t] != 1 or out_for[t] != g:
        return True
    if s[_HOST] + occ_host[t] > host_room and not _free_host(
            code, s, host_room, occ_host[t], spare_k, spare_i, on_host, used_host, occ_host, wanted):
        return False
    begin = max(chan[co], produced[t], s[_FREED_HOST])
    end = begin + out_time[t]
    chan[co] = end
    used[t] = max(used[t], end)
    on_host[t] = True
    produced_host[t] = end
    used_host[t] = end
    s[_HOST] += occ_host[t]
    s[_MOVED] += size[t]
    out_state[t] = 2
    _emit(code, s, 1, t, 0, 1)
    h = open_gap[t]
    if h >= 0 and vac[h] and state[h] == 1:
        _push(pend_k, pend_i, s[_PEND], used[t], h)
        s[_PEND] += 1
    return True


@numba.njit(cache=True)
def _drop_one(code, s, limit, sooner, gone_k, gone_i, pend_k, pend_i, tensor, stop, state, on_dev, used, occ, far):  # type: ignore[no-untyped-def]
    """Drop one copy on the device that has left by ``limit`` and is next used after ``sooner``; False if there is none."""
    while s[_PEND] > 0 and pend_k[0] <= limit:
        item = pend_i[0]
        _pop(pend_k, pend_i, s[_PEND])
        s[_PEND] -= 1
        _push(gone_k, gone_i, s[_GONE], -far if item < 0 else -stop[item], item)
        s[_GONE] += 1
    while s[_GONE] > 0:
        item = gone_i[0]
        if -gone_k[0] <= sooner and item >= 0 and state[item] == 1:
            return False
        _pop(gone_k, gone_i, s[_GONE])
        s[_GONE] -= 1
        if item >= 0:
            if state[item] != 1:
                continue
            state[item] = 2
            t = tensor[item]
        else:
            t = -item - 1
        on_dev[t] = False
        _emit(code, s, 2, t, 0, 0)
        s[_FREED_DEV] = max(s[_FREED_DEV], used[t])
        s[_DEV] -= occ[t]
        return True
    return False


@numba.njit(cache=True)
def _make_room(code, s, room, need, now, out_k, out_i, out_state, out_for, tensor, chan, co, produced, used, on_host,  # type: ignore[no-untyped-def]
               produced_host, used_host, occ, occ_host, host_room, out_time, size, open_gap, state, vac, pend_k, pend_i,
               spare_k, spare_i, wanted, gone_k, gone_i, stop, on_dev, far):
    """Drop copies until ``need`` bytes fit, waiting for copies out if it must; return the time waited for, −1 if in vain."""
    while s[_DEV] + need > room:
        if _drop_one(code, s, now, -1, gone_k, gone_i, pend_k, pend_i, tensor, stop, state, on_dev, used, occ, far):
            continue
        if s[_PEND] > 0:
            now = pend_k[0]
        elif s[_OUT] > 0:
            if not _copy_out(code, s, out_k, out_i, out_state, out_for, tensor, chan, co, produced, used, on_host,
                             produced_host, used_host, occ_host, host_room, out_time, size, open_gap, state, vac, pend_k,
                             pend_i, spare_k, spare_i, wanted):
                return FAIL
        else:
            return FAIL
    return now


@numba.njit(cache=True)
def _copy_in(code, s, t, chan, ci, produced, used, produced_host, used_host, in_time, on_dev, occ, size):  # type: ignore[no-untyped-def]
    """Copy a tensor back to the device."""
    begin = max(chan[ci], produced_host[t], s[_FREED_DEV])
    end = begin + in_time[t]
    chan[ci] = end
    used_host[t] = max(used_host[t], end)
    produced[t] = end
    used[t] = end
    on_dev[t] = True
    s[_DEV] += occ[t]
    s[_PEAK] = max(s[_PEAK], s[_DEV])
    s[_MOVED] += size[t]
    _emit(code, s, 1, t, 1, 0)


@numba.njit(cache=True)
def _stay(g, s, vac, tensor, start, version, state, wanted, out_state, out_for, out_k, out_i):  # type: ignore[no-untyped-def]
    """Let a tensor that never left stay; its copy-out moves to the next vacated gap of the version, or is called off."""
    t = tensor[g]
    state[g] = 3
    wanted[t] -= 1
    if out_state[t] == 1 and out_for[t] == g:
        out_state[t] = 0
        h = g + 1
        while h < len(tensor) and tensor[h] == t and version[h] == version[g]:
            if vac[h]:
                out_state[t] = 1
                out_for[t] = h
                _push(out_k, out_i, s[_OUT], start[h], h)
                s[_OUT] += 1
                break
            h += 1


@numba.njit(cache=True)
def run_pass(vac, planned, code, dur, stream, n_streams, op_at, operand, follow, born, start_born, rd, reads, wr, writes,  # type: ignore[no-untyped-def]
             up, updates, af, after, occ, occ_host, size, out_time, in_time, channels, tensor, start, stop, version, kind,
             choice, at_start, home_dev, home_host, is_any, free_start, stay,
             room, host_room):
    """The pass. Returns makespan (−1: does not fit), bytes moved, device peak, instructions written."""
    n, n_tensors, n_gaps = len(dur), len(occ), len(tensor)
    co, ci, far = channels[0], channels[1], n + 2
    s = np.zeros(12, np.int64)
    chan = np.zeros(channels[2] + 1, np.int64)
    stream_free = np.zeros(n_streams, np.int64)
    on_dev, on_host = np.zeros(n_tensors, np.bool_), np.zeros(n_tensors, np.bool_)
    produced, used = np.zeros(n_tensors, np.int64), np.zeros(n_tensors, np.int64)
    produced_host, used_host = np.zeros(n_tensors, np.int64), np.zeros(n_tensors, np.int64)
    out_state, out_for = np.zeros(n_tensors, np.int64), np.full(n_tensors, -1, np.int64)
    open_gap = np.full(n_tensors, -1, np.int64)
    wanted = np.zeros(n_tensors, np.int64)  # vacated gaps of the tensor still to be served from the backing tier
    state = np.zeros(n_gaps, np.int64)  # 0 not begun, 1 on the device, 2 dropped, 3 back (or never left)
    blocked = np.full(n_gaps, -1, np.int64)
    extra = np.zeros(n + 2, np.int64)
    op_end = np.zeros(n, np.int64)
    cap = n_gaps + n_tensors + 8
    out_k, out_i = np.empty(2 * cap, np.int64), np.empty(2 * cap, np.int64)
    in_k, in_i = np.empty(cap, np.int64), np.empty(cap, np.int64)
    pend_k, pend_i = np.empty(2 * cap, np.int64), np.empty(2 * cap, np.int64)
    gone_k, gone_i = np.empty(2 * cap, np.int64), np.empty(2 * cap, np.int64)
    spare_k, spare_i = np.empty(2 * cap, np.int64), np.empty(2 * cap, np.int64)
    last = 0
    for t in range(n_tensors):
        g = at_start[t]
        away = is_any[t] and ((g >= 0 and choice[g] and vac[g]) or (g == -2 and free_start[t]))
        if home_dev[t] or (is_any[t] and not away):
            on_dev[t] = True
            s[_DEV] += occ[t]
        if home_host[t] or away:
            on_host[t] = True
            out_state[t] = 2
            s[_HOST] += occ_host[t]
        if stay[t] and on_host[t]:
            wanted[t] += 1
    for g in range(n_gaps):
        if vac[g]:
            wanted[tensor[g]] += 1
    if s[_DEV] > room or s[_HOST] > host_room:
        return FAIL, 0, 0, 0
    s[_PEAK] = s[_DEV]
    for t in range(n_tensors):
        g = at_start[t]
        if on_dev[t] and not on_host[t]:
            h = start_born[t]
            while h >= 0 and h < n_gaps and tensor[h] == t and version[h] == -1:
                if vac[h]:
                    _push(out_k, out_i, s[_OUT], start[h], h)
                    s[_OUT] += 1
                    out_state[t] = 1
                    out_for[t] = h
                    break
                h += 1
        if g >= 0:
            open_gap[t] = g
            if vac[g]:
                if on_dev[t]:
                    state[g] = 1
                    if on_host[t]:
                        _push(pend_k, pend_i, s[_PEND], 0, g)
                        s[_PEND] += 1
                else:
                    state[g] = 2
                if kind[g] <= 1:
                    _push(in_k, in_i, s[_IN], stop[g], g)
                    s[_IN] += 1
        elif g == -2 and on_dev[t]:
            _push(pend_k, pend_i, s[_PEND], 0, -t - 1)
            s[_PEND] += 1
    for i in range(n + 1):
        now = stream_free[stream[i]] if i < n else max(stream_free.max(), chan[co])
        while s[_OUT] > 0 and (chan[co] <= now or i == n):
            if not _copy_out(code, s, out_k, out_i, out_state, out_for, tensor, chan, co, produced, used, on_host,
                             produced_host, used_host, occ_host, host_room, out_time, size, open_gap, state, vac,
                             pend_k, pend_i, spare_k, spare_i, wanted):
                return FAIL, 0, 0, 0
        # copies back, in order of next use, if the channel is idle before this op ends and their room is free up to that
        # use; issued only after the op they would wait for the drops that follow it
        own = 0
        until = now
        if i < n:
            until += dur[i]
            for j in range(wr[i], wr[i + 1]):
                own += occ[writes[j]]
        while s[_IN] > 0 and chan[ci] <= until:
            g = in_i[0]
            t, q = tensor[g], stop[g]
            if q <= i or blocked[g] >= i:
                break
            need = occ[t]
            j = q - 1
            while j >= i and planned[j + 1] + extra[j + 1] + need <= room:
                j -= 1
            if j >= i:
                blocked[g] = j
                break
            if state[g] != 1:
                while s[_DEV] + need + own > room:
                    if not _drop_one(code, s, now, q, gone_k, gone_i, pend_k, pend_i, tensor, stop, state, on_dev, used,
                                     occ, far):
                        break
                if s[_DEV] + need + own > room:
                    break
            _pop(in_k, in_i, s[_IN])
            s[_IN] -= 1
            for j in range(i, q):
                extra[j + 1] += need
            if state[g] == 1:
                _stay(g, s, vac, tensor, start, version, state, wanted, out_state, out_for, out_k, out_i)
            else:
                wanted[t] -= 1
                _copy_in(code, s, t, chan, ci, produced, used, produced_host, used_host, in_time, on_dev, occ, size)
                state[g] = 3
            if wanted[t] == 0 and on_host[t]:
                _push(spare_k, spare_i, s[_SPARE], used_host[t], t)
                s[_SPARE] += 1
        # what this op (or the end) needs now: first what never left, then what must be copied
        held = s[_IN]
        count = 0
        while s[_IN] > 0 and in_k[0] <= i:
            g = in_i[0]
            _pop(in_k, in_i, s[_IN])
            s[_IN] -= 1
            if state[g] == 1:
                _stay(g, s, vac, tensor, start, version, state, wanted, out_state, out_for, out_k, out_i)
            else:
                count += 1
                in_i[held - count] = g  # the freed end of the heap's array holds those to copy
        for c in range(1, count + 1):
            g = in_i[held - c]
            t = tensor[g]
            now = _make_room(code, s, room, occ[t], now, out_k, out_i, out_state, out_for, tensor, chan, co, produced, used,
                             on_host, produced_host, used_host, occ, occ_host, host_room, out_time, size, open_gap,
                             state, vac, pend_k, pend_i, spare_k, spare_i, wanted, gone_k, gone_i, stop, on_dev, far)
            if now < 0:
                return FAIL, 0, 0, 0
            _copy_in(code, s, t, chan, ci, produced, used, produced_host, used_host, in_time, on_dev, occ, size)
            state[g] = 3
            wanted[t] -= 1
            if wanted[t] == 0:
                _push(spare_k, spare_i, s[_SPARE], used_host[t], t)
                s[_SPARE] += 1
        if i == n:
            break
        need = 0
        for j in range(wr[i], wr[i + 1]):
            need += occ[writes[j]]
        now = _make_room(code, s, room, need, now, out_k, out_i, out_state, out_for, tensor, chan, co, produced, used,
                         on_host, produced_host, used_host, occ, occ_host, host_room, out_time, size, open_gap,
                         state, vac, pend_k, pend_i, spare_k, spare_i, wanted, gone_k, gone_i, stop, on_dev, far)
        if now < 0:
            return FAIL, 0, 0, 0
        begin = stream_free[stream[i]]
        for j in range(rd[i], rd[i + 1]):
            begin = max(begin, produced[reads[j]])
        for j in range(up[i], up[i + 1]):
            begin = max(begin, used[updates[j]])
        for j in range(af[i], af[i + 1]):
            begin = max(begin, op_end[after[j]])
        if wr[i + 1] > wr[i]:
            begin = max(begin, s[_FREED_DEV])
        # copies out that can begin before this op does, ahead of the drops below that later ones have to wait for
        while s[_OUT] > 0 and chan[co] < begin:
            if not _copy_out(code, s, out_k, out_i, out_state, out_for, tensor, chan, co, produced, used, on_host,
                             produced_host, used_host, occ_host, host_room, out_time, size, open_gap, state, vac,
                             pend_k, pend_i, spare_k, spare_i, wanted):
                return FAIL, 0, 0, 0
        for j in range(up[i], up[i + 1]):
            t = updates[j]
            begin = max(begin, used[t])
            if on_host[t]:
                _emit(code, s, 2, t, 1, 0)
                on_host[t] = False
                s[_FREED_HOST] = max(s[_FREED_HOST], used_host[t])
                s[_HOST] -= occ_host[t]
        end = begin + dur[i]
        stream_free[stream[i]] = end
        op_end[i] = end
        last = max(last, end)
        s[_DEV] += need
        s[_PEAK] = max(s[_PEAK], s[_DEV])
        _emit(code, s, 0, i, -1, 0)
        for j in range(rd[i], rd[i + 1]):
            used[reads[j]] = max(used[reads[j]], end)
        for j in range(wr[i], wr[i + 1]):
            t = writes[j]
            on_dev[t] = True
            produced[t] = end
            used[t] = end
            out_state[t] = 0
        for j in range(up[i], up[i + 1]):
            produced[updates[j]] = end
            out_state[updates[j]] = 0
        for j in range(op_at[i], op_at[i + 1]):
            t, g = operand[j], follow[j]
            h = born[j]
            if h >= 0 and out_state[t] == 0:
                while h < n_gaps and tensor[h] == t and version[h] == i:
                    if vac[h]:
                        _push(out_k, out_i, s[_OUT], start[h], h)
                        s[_OUT] += 1
                        out_state[t] = 1
                        out_for[t] = h
                        break
                    h += 1
            open_gap[t] = g
            if g >= 0 and vac[g]:
                state[g] = 1
                if out_state[t] == 2:
                    _push(pend_k, pend_i, s[_PEND], used[t], g)
                    s[_PEND] += 1
                if kind[g] <= 1:
                    _push(in_k, in_i, s[_IN], stop[g], g)
                    s[_IN] += 1
            elif g == -2:
                _push(pend_k, pend_i, s[_PEND], used[t], -t - 1)
                s[_PEND] += 1
    last = max(last, chan.max())
    return last, s[_MOVED], s[_PEAK], s[_LEN]
