"""What every declaration must satisfy: its noise matters, its commands answer, its sources can be looked up.

A declaration that is off by 5 % in one release must not pass for the paper's: the ratios have to move. A release is
judged among those that hold the same users, since over a partition only the dearest group counts, and with fresh noise,
since a draw that is reused costs infinitely much whatever its size.
"""

import dataclasses
import functools
import math
import re
from fractions import Fraction

import pytest

from privcheck.commands.declarations import calibrate_noise
from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import Draw, Release
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.releases import is_additive
from privcheck.errors import ParameterError
from privcheck.pricing import account
from privcheck.runtime import registry
from privcheck.verification import verify
from privcheck_algorithms.papers import GALLERY
from structures import over_registry

pytestmark = pytest.mark.slow

DECLARED = over_registry("declared")
LEAST, MORE = Fraction(19, 20), Fraction(21, 20)  # of the standard deviation
UNITS = {"variance": 2, "scale": 1, "threshold": 2}  # power of the standard deviation that a spread is


def with_noise(release, factor):
    """The release with its noise's standard deviation multiplied; of shuffled bits the noise bits' sum."""
    if not isinstance(release, Release):
        return release.with_std(Fraction(factor))
    for field, power in UNITS.items():
        if hasattr(release.mechanism, field):
            spread = getattr(release.mechanism, field) * factor**power
            return dataclasses.replace(release, mechanism=dataclasses.replace(release.mechanism, **{field: spread}))
    raise AssertionError(f"{release.mechanism}: a mechanism this test does not know, add its spread to UNITS")


def among(declaration, group):
    """The declaration with fresh noise and those releases only that hold users of the group."""
    fresh = tuple(dataclasses.replace(r, draw=Draw()) for r in declaration.seen_by(group))
    among = declaration.among(group)
    others = [one for one in declaration.releases if one.users in among and not is_additive(one)]
    return dataclasses.replace(declaration, releases=(*fresh, *others))


def with_all(declaration, change):
    """The declaration with everything that leaves changed."""
    return dataclasses.replace(declaration, releases=tuple(map(change, declaration.releases)))


def group_of(declaration, name):
    """The group that holds the users of what leaves under that name."""
    return next(r for r in declaration.releases if r.name == name).users or declaration.groups[0]


def law_unknown(declaration):
    """Whether all that leaves is of mechanisms of which no output's law is known: nothing is bounded from below."""
    own = [one for one in declaration.releases if isinstance(one, OwnMechanism)]
    return own == list(declaration.releases) and all(one.outputs is one.edges is None for one in own)


@functools.cache
def judged(name, group):
    """The verdict on the releases that hold users of the group, at the declared noise."""
    setting = resolve_setting(name, {})
    return verify(among(setting.declared, group), setting.values)


@pytest.mark.parametrize("name", DECLARED)
def test_five_per_cent_less_noise_on_one_release_is_seen(name):
    setting = resolve_setting(name, {})
    for release in (r.name for r in setting.declared.releases):
        group = group_of(setting.declared, release)
        declaration, base = among(setting.declared, group), judged(name, group)
        quieter = with_all(declaration, lambda r, at=release: with_noise(r, LEAST) if r.name == at else r)
        found = verify(quieter, setting.values)
        if math.isinf(base.upper_ratio):
            assert math.isinf(found.upper_ratio), release
            assert found.lower_ratio > base.lower_ratio or math.isinf(base.lower_ratio), release
            continue
        assert found.upper_ratio > base.upper_ratio, release
        assert found.lower_ratio >= base.lower_ratio, release


@pytest.mark.parametrize(("name", "given"), over_registry("declared", readings=True))
def test_more_noise_never_costs_more(name, given):
    setting = resolve_setting(name, given)
    groups = {release.name: group_of(setting.declared, release.name) for release in setting.declared.releases}
    costs = {group: account(among(setting.declared, group)).at(setting.values) for group in groups.values()}
    for one, group in groups.items():
        declaration, before = among(setting.declared, group), costs[group]
        louder = with_all(declaration, lambda r, one=one: with_noise(r, 2) if r.name == one else r)
        after = account(louder).at(setting.values)
        assert after.rho < before.rho or math.isinf(before.rho)
        numeric = any(r.mechanism.law.shuffled for r in declaration.noisy)  # seconds a figure
        for delta in (1e-5,) if numeric else (1e-9, 1e-5, 0.1):
            assert after.epsilon(delta) <= before.epsilon(delta)


@pytest.mark.parametrize("name", DECLARED)
def test_five_per_cent_more_noise_costs_less(name):
    setting = resolve_setting(name, {})
    for group in setting.declared.groups:
        declaration, base = among(setting.declared, group), judged(name, group)
        found = verify(with_all(declaration, lambda r: with_noise(r, MORE)), setting.values)
        assert found.upper_ratio < base.upper_ratio or math.isinf(base.upper_ratio)
        # outputs that are impossible for one neighbour stay so, however much noise there is
        assert found.lower_ratio < base.lower_ratio or math.isinf(base.lower_ratio) or law_unknown(setting.declared)
        assert found.lower_ratio <= found.upper_ratio * (1 + 1e-12)


@pytest.mark.parametrize("name", DECLARED)
def test_the_least_noise_has_the_fields_that_scripts_rely_on(name):
    setting = resolve_setting(name, {})
    if setting.declared.shared_draws:
        with pytest.raises(ParameterError, match="fresh"):
            calibrate_noise(setting, epsilon=1.0, delta=1e-5)
        return
    if any(r.mechanism.law.integers for r in setting.declared.noisy):
        with pytest.raises(ParameterError, match="each bit as a separate message"):
            calibrate_noise(setting, epsilon=1.0, delta=1e-5)
        return
    if account(setting.declared).at(setting.values).unbounded:
        with pytest.raises(ParameterError, match="no finite ε is known for this noise"):
            calibrate_noise(setting, epsilon=1.0, delta=1e-5)
        return
    found = calibrate_noise(setting, epsilon=1.0, delta=1e-5)
    assert [r.name for r in found.releases] == [r.name for r in setting.declared.releases]
    for row in found.releases:
        assert row.needed_std == pytest.approx(row.ratio * row.published_std, rel=1e-9)
        assert 0 < row.ratio < math.inf
    assert found.guarantee.epsilon <= 1.0


@pytest.mark.parametrize("name", DECLARED)
def test_every_source_names_a_numbered_statement(name):
    """That a reader finds in any copy of the paper, never a line of a text; of published code lines at a named commit.

    This package's own refers to its README.
    """
    algorithm = registry.algorithm(name)
    for reading in [{}, *({c.name: r} for c in algorithm.readings for r in c.ways[1:])]:
        declaration = resolve_setting(name, reading).declared
        own = declaration.source.startswith("this package")
        where = r"README"
        if not own:
            where = r"\b(Algorithms?|Theorem|Claim|Lemma|Corollary|Definition|[sS]ection|Appendix|Table|Figure"
            where += r"|footnote|eq\.) \(?([0-9]|[A-Z]\b|[IVX]+\b)"
        if algorithm.paper is GALLERY:  # papers that are not at hand say so
            where += r"|as described in "
        if name.startswith("published-"):
            where += r"|\bcode lines? [0-9]"
        given = [
            *(r.source for r in declaration.noisy if r.source),
            *(a.source for a in declaration.assumptions),
        ]
        assert declaration.source
        texts = (declaration.source, declaration.claim.source, *given)
        assert not [s for s in texts if re.search(r"(?<!code )lines? [0-9]{2}", s)]
        assert [s for s in (declaration.claim.source, *given) if not re.search(where, s)] == []
