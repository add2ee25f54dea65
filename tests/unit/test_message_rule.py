"""The rule on messages: a mutant that sends the sum triggers it, the same declaration with bits sent apart does not."""

import dataclasses

import pytest

from privcheck.declare.mechanisms import ShuffledBits
from privcheck.verification import verify
from privcheck_algorithms.sdp_pe.declaration import declare_apart


def _sent(messages, name):
    declaration = dataclasses.replace(declare_apart({}), name=name)
    releases = tuple(
        dataclasses.replace(
            r, mechanism=ShuffledBits(users=r.mechanism.users, threshold=r.mechanism.threshold, messages=messages)
        )
        for r in declaration.releases
    )
    return dataclasses.replace(declaration, releases=releases)


@pytest.mark.parametrize(("episodes", "severity"), [("20", "theoretical"), ("200000", "critical")])
@pytest.mark.parametrize("name", ["sdp-pe", "some other name"])
def test_integers_trigger_it_whatever_the_algorithm_is_called(name, episodes, severity):
    mutant = _sent("integers", name)
    found = verify(mutant, mutant.values({"K": episodes}))
    hits = [f for f in found.findings if f.code == "message-as-sum"]
    assert [f.where for f in hits] == [r.name for r in mutant.releases]
    assert {f.severity for f in hits} == {severity}
    assert all((f.witness is not None) == (severity == "critical") for f in hits)


def test_bits_sent_apart_do_not():
    declaration = _sent("bits", "sdp-pe")
    found = verify(declaration, declaration.values({"K": "200000"}))
    assert "message-as-sum" not in {f.code for f in found.findings}
    assert found.verdict == "holds"
