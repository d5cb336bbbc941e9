"""May this build of CP-SAT certify anything?

OR-Tools 9.15.6755 returns wrong optima when the Boolean coefficients of a row sum past 2^31 (upstream issue 5293). The
formulations here keep rows below that and switch the faulty presolve step off (`harden`); before any claim a small
model that the faulty build gets wrong is solved under the same parameters, once a process.
"""

from __future__ import annotations

from functools import cache

from ortools.sat.python import cp_model

__all__ = ["TRUE_OPTIMUM", "certifies", "harden", "reproducer"]

#: By enumeration of the 1,024 points of `reproducer`.
TRUE_OPTIMUM = -20401094656


def harden(solver: cp_model.CpSolver) -> None:
    """Switch off the presolve step that is wrong in 9.15.6755."""
    solver.parameters.presolve_inclusion_work_limit = 0


def reproducer() -> cp_model.CpModel:
    """Return the ten-Boolean model of the upstream report."""
    model = cp_model.CpModel()
    x = [model.new_bool_var(f"x{i}") for i in range(10)]
    model.add_at_most_one([x[5], x[7], x[6], x[1]])
    model.add_at_most_one([x[8], x[3], x[0]])
    row = 18253611009 * x[3] + 7516192770 * x[4] - 16106127357 * x[0] - 11811160061 * x[5]
    model.add_linear_constraint(row, -38654705664, 3221225472).only_enforce_if(x[7])
    model.minimize(-8589934592 * x[3] - 4294967296 * x[4] - 7516192768 * x[5] - 8589934592 * x[7])
    return model


@cache
def certifies() -> bool:
    """Solve the reproducer under `harden`; False if its optimum is wrong, then no claim may be made."""
    solver = cp_model.CpSolver()
    harden(solver)
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 10.0
    status = solver.solve(reproducer())
    return bool(status == cp_model.OPTIMAL) and round(solver.objective_value) == TRUE_OPTIMUM
