"""DP-UCBVI (Qiao & Wang 2023), a baseline of Bai et al. 2024 under joint and under local DP."""

from functools import partial

from privcheck.registry import Algorithm
from privcheck_algorithms.dp_ucbvi.declaration import central, local
from privcheck_algorithms.online import rewards
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.online.rewards import OPTIONS, player
from privcheck_algorithms.papers import SHUFFLE
from privcheck_algorithms.privatizers.declaration import ANY_START, LOG, NOISE

CENTRAL = Algorithm(
    name="dp-ucbvi-central",
    title="DP-UCBVI under joint DP, with Chowdhury & Zhou's counters (its own noise is not in the papers)",
    source="Qiao & Wang 2023, as described in Bai et al. 2024, arXiv:2411.11647, Table I",
    paper=SHUFFLE,
    declare=central,
    readings=(NOISE, LOG, ANY_START),
    options=OPTIONS,
    instead="calibrated-ucb-vi",
    printed=PRINTED,
    online=partial(player, kind=rewards.BERNSTEIN, label="dp-ucbvi"),
    instance=CLOSELY,
)

LOCAL = Algorithm(
    name="dp-ucbvi-local",
    title="DP-UCBVI under local DP, with Chowdhury & Zhou's noise (its own is not in the papers)",
    source="Qiao & Wang 2023, as described in Bai et al. 2024, arXiv:2411.11647, Table I",
    paper=SHUFFLE,
    declare=local,
    readings=(NOISE, ANY_START),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed=PRINTED,
    online=partial(player, kind=rewards.BERNSTEIN, label="dp-ucbvi"),
    instance=CLOSELY,
)

__all__ = ["CENTRAL", "LOCAL"]
