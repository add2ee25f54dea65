"""What bandits release about their users: a user pulls one arm and leaves one reward in [0, 1].

An interaction is an episode of one step in one state, an arm an action. The arm is no data of the user: the algorithm
names it, computed from what earlier users released, so that neighbours share it and differ in the reward alone. In the
papers too a dataset of a bandit is one of rewards.
"""

from __future__ import annotations

from typing import Final

from privcheck.declaration import Parameter
from privcheck.relations import ReplaceOne
from privcheck.statistics import RewardSums
from privcheck.symbols import symbol

arms = symbol("arms", "count")
ONE_REWARD: Final = ReplaceOne("user", initial="fixed")
SUMS: Final = RewardSums(1, 1, arms)
ARMS: Final = Parameter(name="arms", default=5, kind="count", meaning="how many arms there are", least=2)
BUDGET: Final = Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats")
