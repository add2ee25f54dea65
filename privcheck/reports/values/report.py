"""A whole report: everything about one algorithm, or its audits alone. The fields are those of report.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from privcheck.reports.values.audited import Audits
from privcheck.reports.values.codec import SCHEMA
from privcheck.reports.values.declared import Budget, CalibratedNoise, Shown
from privcheck.reports.values.learned import Ran, RanOnline
from privcheck.reports.values.result import Result
from privcheck.reports.values.verified import Verified

if TYPE_CHECKING:
    from privcheck.reports.picture import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Which version of privcheck made a report, and the form that it has."""

    version: str = ""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictBrief:
    """The verdict in brief."""

    verdict: Literal["holds", "fails", "undecided"]
    method: Literal["proved", "checked", "witness"]
    sentence: str
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Versions, seeds, command line, start and duration."""

    versions: Mapping[str, str]
    seeds: Mapping[str, int]
    command: str
    started: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report(Result):
    """What a page shows; a section that is None was not asked for, or there is none.

    Attributes:
        privcheck: Who made it.
        algorithm: Its name.
        title: One line about it.
        source: Paper and algorithm.
        model: Of trust.
        parameters: The declaration's.
        options: The agent's.
        choices: The readings.
        verdict: In brief.
        show: The declaration.
        budget: What it costs.
        verify: The verdict.
        calibrate: The least noise for the same guarantee.
        audit: Every audit.
        run: What the agent learned.
        provenance: Where it comes from.
        unit: Of privacy, of the declaration.
    """

    privcheck: About
    algorithm: str = ""
    title: str = ""
    source: str = ""
    model: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    verdict: VerdictBrief | None = None
    show: Shown | None = None
    budget: Budget | None = None
    verify: Verified | None = None
    calibrate: CalibratedNoise | None = None
    audit: Audits | None = None
    run: Ran | RanOnline | None = None
    provenance: Provenance | None = None
    unit: Mapping[str, Any] | None = None

    def plot(self) -> Picture:
        """Returns all plots of its page.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.picture import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedReport:
    """What `privcheck report` prints: where the page is."""

    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedPackage:
    """What `privcheck new` prints.

    Attributes:
        name: Of the algorithm.
        kind: Of package: "online" and so on.
        directory: Where the package is.
        files: All that were written.
    """

    name: str
    kind: str
    directory: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What `privcheck doctor` prints.

    Attributes:
        ok: Whether there is no problem.
        problems: In words.
        versions: Of Python and the packages.
        platform: The operating system.
        executable: Python's.
        cores: Of the machine; None where nobody says.
        extras: Whether each optional part is installed, in words, by name.
        noise_sources: In words, by name.
        registered: Names by group.
    """

    ok: bool
    problems: tuple[str, ...]
    versions: Mapping[str, str]
    platform: str
    executable: str
    cores: int | None
    extras: Mapping[str, str]
    noise_sources: Mapping[str, str]
    registered: Mapping[str, tuple[str, ...]]
