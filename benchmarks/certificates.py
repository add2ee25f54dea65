"""Certificates of every registered system and of random declarations: how many are accepted, why others have none.

    python benchmarks/certificates.py [--number 1000] [--seed 0] [--write]

Declarations are those of `benchmarks/verdicts.py`, as drawn and with one field changed; its oracle knows the truth. The
checker is called in this process, alone in what it imports. The exit code is 1 if an accepted certificate says what the
oracle finds false. `--write` puts the table beside this script.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "fuzz"))
from declarations.building import declare, values  # noqa: E402 - the generator lives in the tests
from declarations.specs import Spec, draw, mutants  # noqa: E402
from declarations.truth import answer, bounds  # noqa: E402
from privcheck.errors import CertificateError, PrivcheckError  # noqa: E402
from privcheck.pricing import Priced  # noqa: E402
from privcheck.runtime import registry  # noqa: E402
from privcheck.verification import judge  # noqa: E402
from privcheck.verification.certificates import certificates  # noqa: E402
from privcheck_check.check import check  # noqa: E402
from privcheck_check.values import Rejected  # noqa: E402


class Tally:
    """Outcomes of one kind of declaration."""

    def __init__(self) -> None:
        self.verdicts: collections.Counter[str] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        self.reasons: collections.Counter[str] = collections.Counter()
        self.false: list[str] = []
        self.longest = self.largest = 0.0

    def take(self, priced: Priced, truth: str) -> None:
        """Certify one declaration."""
        verdict = judge(priced).verdict
        self.verdicts[verdict] += 1
        if verdict == "undecided":
            return
        reason = ""
        try:
            for one in certificates(priced):
                began = time.process_time()
                try:
                    check(one.text.encode())
                except Rejected as error:
                    reason = f"rejected, {error.rule}"
                    continue
                finally:
                    self.longest = max(self.longest, time.process_time() - began)
                self.largest = max(self.largest, len(one.text))
                self.kinds[one.kind] += 1
                if (truth, verdict) in {("false", "holds"), ("true", "fails")}:
                    self.false.append(f"{one.kind}: {priced.declaration.name}")
                return
        except PrivcheckError as error:
            known = isinstance(error, CertificateError)
            reason = (reason or _shorten(str(error))) if known else f"{type(error).__name__}: {_shorten(str(error))}"
        self.reasons[reason] += 1


def _shorten(reason: str) -> str:
    """The reason without the name of the release."""
    return reason.split(": ", 1)[-1][:90]


def drawn(number: int, seed: int) -> list[Spec]:
    """So many specs: each system as it was drawn, and with one field changed."""
    found: list[Spec] = []
    for each in range(seed, seed + number):
        spec, rng = draw(each, bounds), random.Random(each)  # noqa: S311 - no secret
        found += [spec, rng.choice(list(mutants(spec, rng)))]
        if len(found) >= number * 2:
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    registered, random_ones = Tally(), Tally()
    for name in registry.names("algorithms"):
        if (made := registry.algorithm(name).declare) is not None:
            registered.take(Priced(made({})), "")
    for spec in drawn(asked.number, asked.seed):
        if sum(random_ones.verdicts.values()) >= asked.number:
            break
        truth: Any = answer(spec)
        if truth == "meaningless":
            continue
        try:
            random_ones.take(Priced(declare(spec), values(spec)), truth)
        except PrivcheckError:
            continue
    text = "\n".join(_lines(asked, registered, random_ones)) + "\n"
    print(text)
    if asked.write:
        (HERE / "certificates.md").write_text(text, encoding="utf-8")
    sys.exit(bool(random_ones.false))


def _lines(asked: argparse.Namespace, registered: Tally, random_ones: Tally) -> list[str]:
    command = f"--number {asked.number} --seed {asked.seed}"
    head = f"`python benchmarks/certificates.py {command}`. A verdict that holds or fails is "
    head += "*certified* if the checker accepts a certificate of it. *False*: accepted, and false by the oracle of "
    head += "`benchmarks/verdicts.py`, which shares no code with either."
    lines = ["# Certificates of the registry and of random declarations", "", head, ""]
    lines += ["| | registry | random |", "| --- | ---: | ---: |"]

    def row(what: str, *figures: object) -> None:
        lines.append(f"| {what} | {' | '.join(map(str, figures))} |")

    both = (registered, random_ones)
    for verdict in ("holds", "fails", "undecided"):
        row(verdict, *(one.verdicts[verdict] for one in both))
    for kind in ("holds-for-all", "holds-at", "refuted"):
        row(f"certified, {kind}", *(one.kinds[kind] for one in both))
    shares = (sum(one.kinds.values()) / max(1, one.verdicts["holds"] + one.verdicts["fails"]) for one in both)
    row("certified, of those that hold or fail", *(f"{share:.1%}" for share in shares))
    row("false", "–", len(random_ones.false))
    row("longest check, processor seconds", *(f"{one.longest:.2f}" for one in both))
    row("largest certificate, bytes", *(f"{one.largest:.0f}" for one in both))
    for title, one in (("registry", registered), ("random", random_ones)):
        lines += ["", f"## Not certified, {title}", "", "| reason | verdicts |", "| --- | ---: |"]
        lines += [f"| {reason.replace('|', ' ')} | {count} |" for reason, count in one.reasons.most_common(15)]
    return lines


if __name__ == "__main__":
    main()
