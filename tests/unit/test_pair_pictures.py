"""Pictures of worst pairs, over generated trajectories: well-formed, nothing outside, what differs marked."""

import math
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from privcheck.reports.pair_picture import draw_pair
from privcheck.reports.values import Verified
from privcheck.verification import PlainWitness

SVG = "{http://www.w3.org/2000/svg}"


def verified(pair, *, least=1.5, most=1.5):
    witness = PlainWitness(words="in D one thing; in D′ <another>", loss=least, changes={}, pair=pair)
    return Verified(
        algorithm="some-system", parameters={}, claim="", verdict="fails", joint=None, method="witness",
        upper_ratio=most, lower_ratio=least, findings=(), witness=witness, repair="", sentence="",
    )  # fmt: skip


def user(steps):
    states, actions, rewards = zip(*steps, strict=True)
    return {"states": [*states, 0], "actions": list(actions), "rewards": list(rewards)}


_STEP = st.tuples(st.integers(0, 30), st.integers(0, 9), st.sampled_from([0.0, 0.25, 1.0]))


@given(
    st.lists(st.tuples(_STEP, _STEP), min_size=1, max_size=30),
    st.sampled_from([0.0, 1e-6, 0.5, 1.0, 1.95, 2e6, math.inf]),
    st.sampled_from([1.0, 3.0, math.inf]),
)
def test_pictures_of_trajectories(steps, least, factor):
    first, second = zip(*steps, strict=True)
    drawn = draw_pair(verified((user(first), user(second)), least=least, most=max(least, 1e-7) * factor))
    root = ET.fromstring(drawn)  # noqa: S314 - written above
    wide, high = float(root.get("width")), float(root.get("height"))
    for box in root.iter(f"{SVG}rect"):
        assert 0 <= float(box.get("x", 0)) <= float(box.get("x", 0)) + float(box.get("width")) <= wide + 0.2
        assert float(box.get("y", 0)) + float(box.get("height")) <= high
    for text in root.iter(f"{SVG}text"):
        assert float(text.get("x")) + 7.2 * len(text.text) <= wide + 10
        assert float(text.get("y")) <= high
    marked = [text.text for text in root.iter(f"{SVG}text") if text.get("font-weight")]
    if len(steps) <= 6:  # of longer pairs the rest is said to follow
        assert bool(marked) == any(a != b for a, b in steps)


def test_equal_users_are_not_marked_and_users_who_are_nobody_are_said():
    same = user([(0, 0, 1.0)])
    assert "font-weight" not in draw_pair(verified((same, same)))
    assert "nobody" in draw_pair(verified(("steps 1, 17", None)))
    assert draw_pair(verified(None)) is None
