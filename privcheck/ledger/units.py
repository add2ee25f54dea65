"""The unit of privacy at the ledger's door: one check of everything that is priced, planned, reserved or charged.

A dataset's policy states whom it protects, and nothing is spent from it that was priced for less: a request carries its
own unit, and the two are compared here, before anything is asked of a store. Nothing is taken for granted: a request
without a unit is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from privcheck.errors import ParameterError
from privcheck.ledger.values import Policy
from privcheck.ledger.wire import read_json
from privcheck.unit import Unit, explain_mismatch, parse_unit

DATASET: Final = "dataset"  # in place of a unit: who charges states that it was priced for the dataset's
_EXAMPLE: Final = "'patient, 8 trajectories, replace-one, central'"
_LONGEST: Final = 2000  # characters of a unit


def state_unit(given: object, *, by: str) -> Unit:
    """The complete unit that a person states for a dataset, with that person as its source.

    Args:
        given: A `Unit`, its JSON as a mapping or text, or the text that `parse_unit` reads.
        by: Who states it.

    Raises:
        ParameterError: It is no unit, or its relation or model is missing.
    """
    unit = _read(given, by=by)
    if unit.relation is None or unit.model is None:
        message = f"expected a unit with its relation and its model of trust, as {_EXAMPLE}; got {unit.words}"
        raise ParameterError(message, name="unit", given=unit.words)
    return replace(unit, basis="statement", stated_by=by)


def check_unit(policy: Policy, given: object, *, by: str, relations: Iterable[str] = ()) -> Unit:
    """The unit for which something was priced, where a dataset's budget can pay for it.

    Args:
        policy: Of the dataset.
        given: A `Unit`, its JSON, its text, or "dataset": who charges states that it was priced for the dataset's unit.
        by: Who states it, where nothing but that person does.
        relations: The neighbouring relations that the events name.

    Raises:
        ParameterError: No unit is given, or it does not cover the dataset's; an event names another
            relation; the unit was asserted, and the policy does not take that; or the policy has no unit.
    """
    needed, taken = needed_unit(policy), (policy.dataset, policy.asserted_units)
    if isinstance(given, (str, Unit)):
        return _check_again(needed, taken, given, by, tuple(relations))
    return _check(needed, taken, given, by, tuple(relations))


def _check(needed: Unit, taken: tuple[str, bool], given: object, by: str, relations: tuple[str, ...]) -> Unit:
    dataset, takes_asserted = taken
    whose = f"dataset {dataset!r}"
    if given is None:
        message = (
            f"expected a unit (--unit): for whom it was priced, as {_EXAMPLE}, or the word {DATASET!r} (--unit "
            f"{DATASET}), by which you state that it was priced for the unit of {whose}, {needed.text!r}"
        )
        raise ParameterError(message, name="unit")
    offered = replace(needed, basis="statement", stated_by=by) if given == DATASET else _read(given, by=by)
    mismatch = explain_mismatch(offered, needed, whose=whose)
    if mismatch is not None:
        raise ParameterError(mismatch, name="unit", given=offered.text)
    for relation in relations:
        named: Any = relation
        mismatch = explain_mismatch(replace(offered, relation=named), needed, whose=whose)
        if mismatch is not None:
            message = f"an event names the relation {relation} itself: {mismatch}"
            raise ParameterError(message, name="relation", given=relation)
    if offered.basis == "assertion" and not takes_asserted:
        message = (
            f"the unit of this is only asserted ({offered.words}; stated by: {offered.stated_by}), and the policy of "
            f"{whose} takes no asserted units: name the column that says who a user is (--column user=…), or open "
            "another dataset with privcheck ledger policy … --allow-asserted-unit"
        )
        raise ParameterError(message, name="unit", given=offered.text)
    return offered


_check_again = lru_cache(maxsize=1024)(_check)  # most requests are like one that came before


def needed_unit(policy: Policy) -> Unit:
    """The unit of a dataset, for which everything has to be priced.

    Raises:
        ParameterError: The policy is of a store from before units.
    """
    if policy.unit is None:
        assert policy.old_unit is not None
        message = (
            f"dataset {policy.dataset!r} is of an earlier version: its policy does not say how many trajectories a "
            f"user has ({policy.old_unit.words}), so that nothing more is granted, priced or charged; open another "
            f"dataset with --unit, as {_EXAMPLE}"
        )
        raise ParameterError(message, name="unit")
    return policy.unit


def _read(given: object, *, by: str) -> Unit:
    if isinstance(given, str) and len(given) <= _LONGEST:
        return _read_text(given, by)
    unit = given if isinstance(given, Unit) else _read_fields(given, by=by)
    return replace(unit, stated_by=by) if unit.basis == "statement" else unit  # whoever hands it in states it


def _read_text(text: str, by: str) -> Unit:
    if text.lstrip().startswith("{"):
        return _read(read_json(text), by=by)
    return parse_unit(text, stated_by=by)


def _read_fields(given: object, *, by: str) -> Unit:
    if not isinstance(given, Mapping):
        message = f"expected a unit of privacy as {_EXAMPLE}, or its JSON; got {str(given)[:200]!r}"
        raise ParameterError(message, name="unit", given=given)
    return Unit.of({"basis": "statement", "stated_by": by, **given})
