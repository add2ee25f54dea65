"""What linear agents have to say about the features that they regress on."""

from __future__ import annotations

from privcheck.features import FeatureMap
from privcheck.results import Remark


def remark_features(features: FeatureMap) -> tuple[Remark, ...]:
    """Returns a remark on features that nobody gave; none where somebody did."""
    if not features.one_hot:
        return ()
    S, A, d = features.phi.shape
    text = (
        f"No features are known: every one of {S} states and {A} actions has a coordinate of its own, d = {d}. What is "
        "learned of one says nothing of another; public features of fewer dimensions need fewer users (--features "
        "FILE)."
    )
    return (Remark(title="One coordinate for every state and action", text=text),)
