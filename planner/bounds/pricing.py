"""Lagrangian of the fluid model: the cheapest behaviour of each tensor under given prices, and a lower bound.

With prices α_k, β_k ≥ 0 for outward and inward channel time in window k (α_k + β_k ≤ 1; α_k = β_k ≤ 1 if the two directions
share a channel) and μ_k ≥ 0 per byte absent at point k, dropping the channel and memory rows of the fluid model
(`planner.bounds.fluid`) leaves one small problem per tensor:

    value(α, β, μ) = Σ_k busy_k (1 − α_k − β_k) + Σ_k μ_k over_k + Σ_t min over behaviours of tensor t of
                     [Σ copies out α_a·out_t + Σ copies back β_b·in_t − size_t · Σ_{points k where t is absent} μ_k]

A behaviour says for each version in which window a it is copied out, and for each gap in which window b it comes back: it is
absent at the gap's points max(a, first) … b − 1. Behaviours of that kind are the vertices of the cumulative shares of the
fluid model, so the best value over all prices equals its optimum; every value is a lower bound. The work is
O(gaps × windows).

The value comes with a bound on the rounding error of its floating-point sum, which the caller subtracts.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["KEPT", "lagrangian"]

#: Window written for a gap that is not vacated, or a version that is not copied out.
KEPT = -1


@numba.njit(cache=True)
def _gap_values(g, beta, cum, opens, closes, r_lo, r_hi, size, cost, returns, value, back):  # type: ignore[no-untyped-def]
    """Fill value[d], back[d]: the best return and absence of gap g if it may be absent from point d on."""
    best, at = np.inf, KEPT
    for d in range(closes[g], -1, -1):
        if returns:
            if d >= opens[g]:
                here = beta[d] * cost - size * cum[max(r_lo[g], min(d, r_hi[g]))]
                if here < best:
                    best = here
                    at = d
        else:
            best = -size * cum[r_hi[g]]
            at = len(beta)
        value[d] = best + size * cum[min(max(d, r_lo[g]), r_hi[g])]
        back[d] = at


@numba.njit(cache=True)
def lagrangian(alpha, beta, mu, over, busy, shared, head, kind, version, clean, choice, forced, born, opens, closes,  # type: ignore[no-untyped-def]
               r_lo, r_hi, size, out_cost, in_cost, out_at, from_at, back_at, starts_away, best_value):
    """Return (value, error); fill per gap the windows of copy-out, first absence and return, per tensor start and value.

    Parameters
    ----------
    alpha, beta, mu, over, busy : (K,) float64
        Prices, bytes that must be absent at each point, compute time of each window.
    shared : bool
        Both directions use one channel.
    head : (n + 1,) int64
        Gaps head[i] … head[i + 1] − 1 belong to tensor i; sorted by position, one version after another.
    kind, version, clean, choice, forced, born, opens, closes, r_lo, r_hi : (gaps,)
        See `planner.bounds.fluid`; r_lo … r_hi − 1 are the points of the gap.
    size, out_cost, in_cost : (n,) float64
    out_at, from_at, back_at : (gaps,) int64
        Results.
    starts_away : (n,) bool
        Result.
    best_value : (n,) float64
        Result: value of each tensor's behaviour.
    """
    n_windows = len(busy)
    cum = np.zeros(n_windows + 1)
    total, error = 0.0, 0.0
    for k in range(n_windows):
        cum[k + 1] = cum[k] + mu[k]
        total += mu[k] * over[k]
        share = alpha[k] if shared else alpha[k] + beta[k]
        total += busy[k] * (1.0 - share)
        error += abs(mu[k] * over[k]) + busy[k]
    widest = 0
    for i in range(len(head) - 1):
        widest = max(widest, head[i + 1] - head[i])
    value, back = np.zeros((widest, n_windows)), np.zeros((widest, n_windows), np.int64)
    keep_out, keep_from, keep_back = np.zeros(widest, np.int64), np.zeros(widest, np.int64), np.zeros(widest, np.int64)
    for i in range(len(head) - 1):
        best_total = np.inf
        lo_g, hi_g = head[i], head[i + 1]
        error += (hi_g - lo_g) * (2.0 * size[i] * cum[n_windows] + out_cost[i] + in_cost[i])
        chosen = choice[lo_g]
        for away in range(2 if chosen else 1):
            here = 0.0
            g = lo_g
            while g < hi_g:
                h = g
                while h < hi_g and version[h] == version[g]:
                    h += 1
                start = version[g] == -1
                free = start and ((clean[g] and not chosen) or away == 1)
                must_out = False
                for j in range(g, h):
                    at_end = kind[j] >= 2
                    returns = not at_end or (chosen and kind[j] == 3 and away == 0)
                    if at_end and not free and (forced[j] or (chosen and kind[j] == 3 and away == 1)):
                        must_out = True
                    _gap_values(j, beta, cum, opens, closes, r_lo, r_hi, size[i], in_cost[i], returns, value[j - lo_g],
                                back[j - lo_g])
                best, best_a = 0.0, KEPT
                if free:
                    best_a = 0
                    for j in range(g, h):
                        v = value[j - lo_g, 0]
                        if v < 0.0 or forced[j] or (chosen and (choice[j] or kind[j] == 3)):
                            best += v
                else:
                    if must_out:
                        best = np.inf
                    last = 0
                    for j in range(g, h):
                        last = max(last, closes[j])
                    for a in range(born[g], last + 1):
                        v = alpha[a] * out_cost[i]
                        for j in range(g, h):
                            if a <= closes[j]:
                                w = value[j - lo_g, a]
                                if w < 0.0 or (must_out and kind[j] >= 2):
                                    v += w
                        if v < best:
                            best = v
                            best_a = a
                here += best
                for j in range(g, h):
                    keep_out[j - lo_g] = KEPT if free else best_a
                    keep_from[j - lo_g] = KEPT
                    keep_back[j - lo_g] = KEPT
                    if best_a >= 0 and best_a <= closes[j]:
                        obliged = (free and (forced[j] or (chosen and (choice[j] or kind[j] == 3)))) or (
                            must_out and kind[j] >= 2)
                        if value[j - lo_g, best_a] < 0.0 or obliged:
                            keep_from[j - lo_g] = max(best_a, r_lo[j])
                            keep_back[j - lo_g] = back[j - lo_g, best_a]
                g = h
            if here < best_total:
                best_total = here
                starts_away[i] = away == 1
                for j in range(lo_g, hi_g):
                    out_at[j] = keep_out[j - lo_g]
                    from_at[j] = keep_from[j - lo_g]
                    back_at[j] = keep_back[j - lo_g]
        best_value[i] = best_total
        total += best_total
    return total, error * (n_windows + 64.0) * 2.3e-16
