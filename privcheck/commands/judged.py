"""A system as its page of findings sees it: the verdict at the defaults, and at other readings and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from privcheck.commands.declared import verify_claim
from privcheck.commands.setting import Chosen, resolve_setting, settle
from privcheck.reports.values import Verified
from privcheck.reports.wording import figure, label, ratio, say_holds

COLUMNS = ("text", "verdict", "elsewhere", "cost/claim", "worst pair/claim", "joint DP")  # of `say_columns`


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A verdict at a setting that is not the default in one respect.

    Attributes:
        words: In which, as "log = ln".
        result: The verdict there.
        default: Whether it is the default after all, listed for comparison.
    """

    words: str
    result: Verified
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A system with its verdicts.

    Attributes:
        setting: Its declaration at the defaults.
        result: The verdict there.
        elsewhere: Every reading of every choice, and the parameters that its registration names.
    """

    setting: Chosen
    result: Verified
    elsewhere: tuple[Elsewhere, ...]

    @property
    def name(self) -> str:
        """Returns the system's."""
        return self.result.algorithm

    @property
    def of_paper(self) -> bool:
        """Returns whether the verdict is one on the authors' text or program."""
        origin = self.result.origin
        return origin is not None and origin.of_paper

    @property
    def turns(self) -> tuple[Elsewhere, ...]:
        """Returns where the verdict is another."""
        return tuple(one for one in self.elsewhere if one.result.verdict != self.result.verdict)


def judge(result: Verified) -> Judged:
    """Returns the system whose verdict at the defaults is known, with those at its other settings."""
    setting = resolve_setting(result.algorithm, {})
    return Judged(setting=setting, result=result, elsewhere=tuple(_elsewhere(setting, result)))


def _elsewhere(setting: Chosen, result: Verified) -> Iterator[Elsewhere]:
    for choice in setting.algorithm.readings:
        for reading in choice.ways:
            default = reading == choice.ways[0]
            there = result if default else verify_claim(settle(setting.algorithm, {choice.name: reading}))
            yield Elsewhere(words=f"{choice.name} = {reading}", result=there, default=default)
    for given in setting.algorithm.elsewhere:
        words = ", ".join(
            f"{name} = {figure(int(value) if value.isdigit() else value)}" for name, value in given.items()
        )
        yield Elsewhere(words=words, result=verify_claim(settle(setting.algorithm, given)))


def say_parameters(values: Mapping[str, str]) -> str:
    """Returns parameters in words: "K = 20 000, ε = 1"."""
    said = ((label(name), figure(int(value) if value.isdigit() else value)) for name, value in values.items())
    return ", ".join(f"{name} = {value}" for name, value in said)


def say_verdict(result: Verified) -> str:
    """Returns the verdict in the words of the command line: "holds, proved", or "holds, given arms"."""
    if result.verdict == "holds":
        return say_holds(result.method, result.given)
    return f"{result.verdict}, {result.method}" if result.verdict != "undecided" else "undecided"


def say_ratios(result: Verified) -> tuple[str, str]:
    """Returns cost over claim and the worst pair's loss over claim, each rounded as it errs; never 1 but for 1."""
    return ratio(result.upper_ratio, rounding="up"), ratio(result.lower_ratio, rounding="down")


def say_turns(judged: Judged) -> str:
    """Returns where the verdict is another, in words; empty where it is the same everywhere."""
    by_verdict: dict[str, list[str]] = {}
    for one in judged.turns:
        by_verdict.setdefault(one.result.verdict, []).append(one.words)
    mark = "**" if judged.of_paper else ""  # what is ours does not stand out beside a paper's name
    return "; ".join(f"{mark}{verdict}{mark} at {' and at '.join(places)}" for verdict, places in by_verdict.items())


def say_columns(judged: Judged) -> tuple[str, ...]:
    """Returns a system's cells in the tables of findings."""
    result = judged.result
    text = result.origin.kind if result.origin is not None else "–"
    return (text, say_verdict(result), say_turns(judged) or "–", *say_ratios(result), result.joint or "–")
