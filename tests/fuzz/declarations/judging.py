"""One spec judged by privcheck and by the oracle: right, unsafe, accused, undecided, refused, or crashed."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from declarations.building import declare, values
from declarations.specs import Spec
from declarations.truth import Answer, answer
from privcheck import verify
from privcheck.errors import PrivcheckError

_ELSEWHERE = 4  # other settings of the parameters at which a proof is compared with the truth
_BUDGETS = tuple(Fraction(x) for x in ("1/100", "1/3", "1", "5", "40"))
Outcome = Literal["right", "unsafe", "accused", "undecided", "refused", "refused wrongly", "crashed"]


@dataclass(frozen=True)
class Judgement:
    """What came of one spec; `late` says that nonsense was refused by `verify` only, not when it was declared."""

    spec: Spec
    outcome: Outcome
    truth: Answer
    said: str
    seconds: float
    processor: float  # seconds of it, which do not depend on what else the machine does
    late: bool = False


def judge(spec: Spec) -> Judgement:
    """Returns how privcheck's word on a spec compares with the truth."""
    truth, made = answer(spec), False
    began = time.perf_counter(), time.process_time()

    def judged(outcome: Outcome, said: str, *, late: bool = False) -> Judgement:
        wall, processor = time.perf_counter() - began[0], time.process_time() - began[1]
        return Judgement(spec, outcome, truth, said, wall, processor, late)

    try:
        declaration = declare(spec)
        made = True
        found = verify(declaration, values(spec))
        repair = found.repair
    except PrivcheckError as error:
        said = f"{type(error).__name__}: {error}"
        outcome: Outcome = "refused" if truth == "meaningless" else "refused wrongly"
        late = made and not any(word in spec.meaningless for word in ("value", "parameter", "stated"))
        return judged(outcome, said, late=late)
    except Exception as error:  # noqa: BLE001 - any other exception is what is looked for
        said = f"{type(error).__name__}: {error}"
        return judged("crashed", said)
    said = f"{found.verdict}, {found.method}; upper {found.upper_ratio:.6g}, lower {found.lower_ratio:.6g}: {repair}"
    right = judged(_outcome(truth, found.verdict, found.joint, spec), said)
    if found.verdict == "holds" and found.method == "proved" and (where := _false_elsewhere(spec)):
        return replace(right, outcome="unsafe", said=f"proved, and false at {where}: {said}")
    return right


def _false_elsewhere(spec: Spec) -> str:
    """Returns other values of the parameters at which the claim is false, in words: what is proved is true at all."""
    rng = random.Random(spec.seed)  # noqa: S311 - no secret
    for _ in range(_ELSEWHERE):
        budgets = {name: rng.choice(_BUDGETS) for name in ("rho", "epsilon")}
        values = {**spec.values, "H": rng.choice((1, 2)), "K": rng.choice((1, 2, 3, 7)), **budgets}
        if answer(replace(spec, values=values)) == "false":
            return ", ".join(f"{name} = {values[name]}" for name in ("H", "K", "rho", "epsilon"))
    return ""


def _outcome(truth: Answer, verdict: str, joint: str | None, spec: Spec) -> Outcome:
    if joint == "follows" and (verdict != "holds" or "others' data" in spec.sees):
        return "unsafe"
    if verdict == "holds":
        return "unsafe" if truth in ("false", "meaningless") else "right"
    if truth == "meaningless":
        return "unsafe"  # it was judged at all
    if verdict == "fails":
        return "accused" if truth == "true" else "right"
    return "undecided" if truth != "unknown" else "right"
