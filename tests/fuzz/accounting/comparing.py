"""The same question asked in other words: vectorised, in another order, and by a calibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck import accounting as acc

from .asking import Asking
from .jobs import build
from .judging import LOOSE, SLACK, TINY, judge_epsilon
from .kinds import SPREADS
from .normal import Long
from .parts import Part
from .truth import Judge

_MOST_SINGLES: Final = 40  # events of a job that are composed one by one
_ORDER: Final = ("exact", "estimate", "upper")


def same_job(asking: Asking, curve: acc.Curve) -> None:
    """Compares the curve with those of the same events in another order, grouping and kind of number."""
    parts = asking.job.parts
    singles = [replace(part, count=1) for part in parts for _ in range(part.count)]
    others: dict[str, Callable[[], acc.Curve]] = {
        "the other way round": lambda: acc.compose(*(build(part) for part in reversed(parts))),
        "one composed with the rest": lambda: acc.compose(
            acc.compose(build(parts[0])), *(build(part) for part in parts[1:])
        ),
        "as a sum": lambda: sum((build(part) for part in parts[1:]), acc.compose(build(parts[0]))),
        "with NumPy's numbers": lambda: acc.compose(*(build(part, np.float64) for part in parts)),
        # of the float's decimals: the fraction that the float is would be charged as another number
        "with fractions": lambda: acc.compose(*(build(part, lambda x: Fraction(repr(float(x)))) for part in parts)),
        "with strings": lambda: acc.compose(*(build(part, repr) for part in parts)),
    }
    # of parallel parts, repetitions are the same users' each time, what is composed with itself is not
    if len(singles) <= _MOST_SINGLES and not any("parallel(" in str(part) for part in parts):
        others["one by one"] = lambda: acc.compose(*(build(part) for part in singles))
    for name, make in others.items():
        found = asking(name, make)
        if found is not None and found != curve:
            asking.add("inconsistent", name, math.nan, math.nan, "another curve")


def calibrated(asking: Asking, epsilon: float) -> None:
    """Judges a calibration of all spreads of a job: the scale meets its target, one 1 % less does not."""
    job, delta = asking.job, asking.job.deltas[0]
    if not all(part.kind in SPREADS for part in job.parts) or not 1e-6 < epsilon < 50:
        return
    target = (0.8 * epsilon, delta)

    def scaled(scale: float) -> list[Part]:
        return [
            replace(p, parameters=p.parameters | {s: p.parameters[s] * scale})
            for p in job.parts
            if (s := SPREADS[p.kind])
        ]

    question = f"calibrate({target}, all spreads × s)"
    found = asking(question, lambda: acc.calibrate(target, lambda s: acc.compose(*(build(p) for p in scaled(s)))))
    if found is None:
        return
    asking.report.judged += 1
    there, less = Judge(scaled(found.scale)), Judge(scaled(found.scale / LOOSE))
    for level in range(there.levels):
        if there.least(target[0], level) > delta:
            asking.add("below", question, found.scale, math.nan, f"δ is {there.least(target[0], level):.9g}")
            return
    if less.bounded and less.most(target[0], less.levels - 1) < delta:
        asking.loose("loose", question, found.scale, math.nan, f"{found.figure.method}: 1 % less still does")


def vectorised(asking: Asking, curve: acc.Curve, judge: Judge, far: float) -> None:
    """Judges the vectorised path, at some of its points, by the truth and by the scalar path: the same labels too."""
    n = asking.job.many
    rng = np.random.default_rng(abs(asking.job.number))
    far = far if math.isfinite(far) and far > 0 else 1.0
    deltas, epsilons = np.geomspace(1e-12, 0.5, n), np.linspace(0, 1.3 * far, n)
    question = f"epsilons(np.geomspace(1e-12, 0.5, {n}))"
    found = asking(question, lambda: curve.epsilons(deltas))
    for i in rng.integers(0, n, 2) if found is not None else ():
        delta, value = float(deltas[i]), float(found.values[i])
        slack, asked = SLACK[found.direction], f"{question}[{i}]"
        judge_epsilon(asking, judge, delta, value, slack=slack, question=asked, method=found.method)
        one = asking(f"epsilon(delta={delta!r})", lambda delta=delta: curve.epsilon(delta=delta))
        if one is not None:
            _same(asking, f"{question}[{i}]", value, found, one)
    question = f"deltas(np.linspace(0, {1.3 * far!r}, {n}))"
    found = asking(question, lambda: curve.deltas(epsilons))
    for i in rng.integers(0, n, 2) if found is not None else ():
        epsilon, value = float(epsilons[i]), float(found.values[i])
        least = judge.least(epsilon, judge.levels - 1)
        asking.report.judged += 1
        if not value * (1 + Long(SLACK[found.direction])) >= least - TINY:
            asking.add("below", f"{question}[{i}]", value, least, found.method)
        one = asking(f"delta(epsilon={epsilon!r})", lambda epsilon=epsilon: curve.delta(epsilon=epsilon))
        if one is not None:
            _same(asking, f"{question}[{i}]", value, found, one)


def _same(asking: Asking, question: str, value: float, many: acc.Figures, one: acc.Figure) -> None:
    """Compares a vectorised figure with the scalar one: a label may be that of a worse point, never a better one."""
    bound = "upper" in (many.direction, one.direction)
    if not (value == one.value or math.isclose(value, one.value, rel_tol=1e-3 if bound else 1e-8, abs_tol=1e-290)):
        asking.add("vectorised differs", question, value, one.value, f"{many.method} / {one.method}")
    elif _ORDER.index(many.direction) < _ORDER.index(one.direction):
        asking.add("vectorised label", question, value, one.value, f"{many.direction} / {one.direction}")
