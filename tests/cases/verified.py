"""Every value of the case collection that was verified by exhaustive search and that the model covers.

A row is (name, problem, makespan in ns; None where there is no plan). Units: one byte, one nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.problem import Problem
from tests.toys import toy

__all__ = ["VERIFIED", "joint", "stream_weights", "tied"]

Row = tuple[str, Problem, int | None]


def stream_weights(D: int, **rules: Any) -> Problem:  # noqa: N803
    """Case 1: three weights streamed through a small device."""
    return toy("a0=1@D w1=4@H w2=6@H w3=5@H", "op1(5): a0,w1->a1(1)", "op2(5): a1,w2->a2(1)", "op3(5): a2,w3->a3(1)",
               D=D, out="a3@D", **rules)


def tied(D: int, head: str = "E") -> Problem:  # noqa: N803
    """Case 10: embedding and head are one matrix, or (head F) two."""
    return toy("a0=1@D E=10@H W=8@H" + (" F=10@H" if head == "F" else ""), "op1(5): a0,E->a1(1)", "op2(5): a1,W->a2(1)",
               f"op3(5): a2,{head}->a3(1)", D=D, out="a3@D")


def joint(
    D: int, link: int = 1, f: tuple[int, ...] = (2, 2, 2), b: tuple[int, ...] = (4, 4, 4),  # noqa: N803
    random: str = "", **rules: Any,
) -> Problem:
    """Case 71: keep, offload or recompute, the joint choice."""
    return toy(
        "x=1@DH", f"f1({f[0]}{random}): x->a1(6)", f"f2({f[1]}): a1->a2(6)", f"f3({f[2]}): a2->a3(6)",
        f"b3({b[0]}): a3->g3(1)", f"b2({b[1]}): a2,g3->g2(1)", f"b1({b[2]}): a1,g2->g1(1)",
        D=D, h2d=link, d2h=link, out="g1@D", **rules,
    )


def _rows() -> Iterator[Row]:
    for cap, value in {7: None, 8: 30, 9: 30, 10: 30, 11: 30, 12: 25, 13: 20, 14: 20, 18: 20}.items():
        yield f"1-cap{cap}", stream_weights(cap), value
    for cap, value in {11: None, 12: 43, 19: 43, 20: 28, 30: 28}.items():
        yield f"10-tied-cap{cap}", tied(cap), value
    for cap, value in {11: None, 12: 43, 19: 43, 20: 33}.items():
        yield f"10-untied-cap{cap}", tied(cap, "F"), value
    for cap, value in {59: None, 60: 2}.items():
        yield f"20-cap{cap}", toy("x=0@D", "op1(1): x->u(50),v(10)", "op2(1): v->w(20)", D=cap, out="w@D"), value
    for cap, value in {10: None, 12: 1}.items():
        yield f"25-cap{cap}", toy("x=6@D", "op1(0): x->y(6)", "op2(1): y->z(1)", D=cap, out="z@D"), value
    for half, value in {False: 7, True: 12}.items():
        yield f"39-half={half}", toy("x=0@D W=12@H", "op1(1): x->o1(12)", "op2(1): x,W->y(0)", D=24, h2d=2, d2h=2,
                                     half=half, out="o1@H"), value
    for n, value in {1: 8, 2: 11, 4: 17}.items():
        names = [f"w{i}" for i in range(n)]
        for latency in (3, 0):
            yield f"41-n{n}-latency{latency}", toy(
                " ".join(f"{w}={16 // n}@H" for w in names), f"op1(1): {','.join(names)}->y(0)", D=16, h2d=4,
                h2d_latency=latency), value if latency else 5
    yield "42", toy("big=100@H s=1@H", "op1(5): s->x(1)", "op2(1): x,big->y(1)", D=200, h2d=10), 12
    yield "49-empty", toy("x=2@D", D=2), 0
    yield "49-single", toy("x=2@D", "op1(3): x->y(1)", D=3), 3
    for steps, least in {1: 12, 2: 14, 3: 16}.items():
        ops = [f"s{i}(4): W,{','.join(f'k{j}' for j in range(i))}->k{i}(2)" for i in range(1, steps + 1)]
        yield f"61-{steps}-fits", toy("W=6@DH k0=4@D", *ops, D=least), 4 * steps
        yield f"61-{steps}-short", toy("W=6@DH k0=4@D", *ops, D=least - 1), None
    for cap, home, value in ((20, "DH", 32), (20, "D", 41), (30, "DH", 22), (30, "D", 22)):
        yield f"62-cap{cap}-R@{home}", toy(f"x=0@D R=10@{home}", "op1(1): x->A(10)", "op2(20) ws=10: x->B(0)",
                                           "op3(1): A,R,B->y(0)", D=cap), value
    for host, value in {19: None, 20: 51, 40: 51}.items():
        yield f"70-host{host}", toy("x=0@D", "op1(1): x->a(10),b(10)", "op2(9) ws=15: x->m(0)", "op3(1): a,b,m->y(0)",
                                    D=20, H=host), value
    yield from _joint_rows()
    for cap, value in {11: None, 12: 37, 19: 37, 20: 17, 40: 17}.items():
        yield f"76-cap{cap}", toy("x=1@D", "op1(1): x->a(10),b(1)", "op2(15) ws=8: b->c(1)", "op3(1): a,c->y(1)",
                                  D=cap), value
    yield "84f", toy("A=4@H B=4@H", "op1(1): A,B->y(0)", D=8), 9


def _joint_rows() -> Iterator[Row]:
    kinds = {"keep": (False, False), "offload": (True, False), "recompute": (False, True), "all": (True, True)}
    caps = (12, 13, 14, 18, 19)

    def rows(
        name: str, values: dict[str, tuple[int | None, ...]], caps: tuple[int, ...] = caps, **more: Any
    ) -> Iterator[Row]:
        for kind, listed in values.items():
            offload, recompute = kinds[kind]
            for cap, value in zip(caps, listed, strict=True):
                yield f"{name}-{kind}-cap{cap}", joint(cap, offload=offload, recompute=recompute, **more), value

    yield from rows("71", {"keep": (None, None, None, None, 18), "offload": (38, 28, 24, 22, 18),
                           "recompute": (None, 20, 20, 20, 18), "all": (25, 20, 20, 20, 18)})
    yield from rows("71-link3", {"offload": (22, 20, 18, 18, 18), "recompute": (None, 20, 20, 20, 18),
                                 "all": (22, 20, 18, 18, 18)}, link=3)
    yield from rows("71-f172", {"offload": (23, 19), "recompute": (None, 17), "all": (21, 17)}, caps=(12, 13), link=2,
                    f=(1, 7, 2), b=(2, 2, 2))
    yield from rows("74-random-f1", {"recompute": (None, None, None, 20, 18), "all": (37, 28, 24, 20, 18)}, random="!")


VERIFIED: list[Row] = list(_rows())
