"""The order formulation in CP-SAT: every number in it is whole, so the linear model carries over as it is."""

from __future__ import annotations

from ortools.sat.python import cp_model

from planner.exact.linear import Linear

__all__ = ["to_cpsat"]


def to_cpsat(linear: Linear) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """Return the model and its variables; conditions become enforcement literals."""
    model = cp_model.CpModel()
    x = [
        model.new_bool_var(name) if (low, high) == (0, 1) else model.new_int_var(int(low), int(high), name)
        for low, high, name in zip(linear.low, linear.high, linear.names, strict=True)
    ]
    for row, right, when in linear.rows:
        constraint = model.add(sum(int(a) * x[i] for i, a in row.items()) >= int(right))
        for i, positive in when:
            constraint.only_enforce_if(x[i] if positive else ~x[i])
    model.minimize(sum(int(a) * x[i] for i, a in linear.objective.items()))
    return model, x
