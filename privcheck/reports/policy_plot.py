"""A policy as a heat map: states down, steps across, a colour for each action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

_MOST_LABELS: Final = 40  # states named at the axis
_MOST_IN_LEGEND: Final = 24  # actions


def draw_policy(
    probabilities: NDArray[np.float64], states: Sequence[str], actions: Sequence[str], *, title: str
) -> Figure:
    """Returns the figure.

    Args:
        probabilities: (H, S, A).
        states: What they are called.
        actions: What they are called.
        title: What learned the policy.
    """
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    steps, count, _ = probabilities.shape
    likeliest = probabilities.argmax(axis=2).T  # (S, H)
    chance = probabilities.max(axis=2).T[..., None]
    palette = colormaps["tab10" if len(actions) <= 10 else "tab20" if len(actions) <= 20 else "turbo"]
    places = np.arange(len(actions)) if len(actions) <= 20 else np.linspace(0, 1, len(actions))
    colours = np.array([palette(place)[:3] for place in places])
    image = colours[likeliest] * chance + (1 - chance)  # towards white where other actions are as likely
    figure = Figure(figsize=(min(4 + 0.3 * steps, 12), min(2 + 0.22 * count, 12)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.imshow(image, aspect="auto", interpolation="nearest", origin="upper")
    axes.set(title=f"{title}: likeliest action", xlabel="step", ylabel="state")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if count <= _MOST_LABELS:
        axes.set_yticks(range(count), labels=[str(state) for state in states])
    shown = sorted(set(likeliest.ravel().tolist()))[:_MOST_IN_LEGEND]
    patches = [Patch(facecolor=colours[action], label=actions[action]) for action in shown]
    axes.legend(handles=patches, title="action", loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return figure
