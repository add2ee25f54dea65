"""What an agent shows auditors, checked against what it declares: a face that hides something is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Release
from privcheck.errors import AuditError, ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.online.player import CountsUsers, Player, Regresses, Replays, Replicate, Sent, Shuffles, Tables
from privcheck.schedules import EveryEpisode, PerUser, Tree
from privcheck.setting import Setting
from privcheck.statistics import FeatureSums, GramMatrices
from privcheck.trajectories import Trajectories

Array = NDArray[np.float64]
_ROUNDING = 1e-9  # relative: of sums of rewards


class CheckedFace:
    """A player's face: every declared release in its declared shape, as often as its schedule says.

    Args:
        player: The agent.
        setting: Declaration and parameters.
        episodes: K.

    Raises:
        ParameterError: The player shows nothing.
    """

    def __init__(self, player: Player, setting: Setting, episodes: int) -> None:
        if player.face is None:
            message = (
                f"{player.label} declares releases but has no face: nothing of the running agent can be audited; give "
                "its Player a `face` (privcheck.online.player.Face), or write it as a plain agent, which has one"
            )
            raise ParameterError(message, name="face")
        self._player, self._face, self._episodes = player, player.face, episodes
        self._releases = setting.declared.noisy
        self._shapes = {release.name: release.statistic.shape(setting.values) for release in self._releases}
        self._due = min(_outputs(release.schedule, setting, episodes) for release in self._releases)
        self._apart = len({release.schedule.words for release in self._releases}) > 1
        # the policy that a user was told is one of those that must not move, whatever the face says
        self.policy: tuple[str, ...] = tuple(dict.fromkeys((player.told, *self._face.policy)))
        self.board: tuple[str, ...] = self._face.board
        self.replay: str = self._face.replay if isinstance(self._face, Replays) else ""

    def output(self, episode: int) -> int | None:
        """Returns which output leaves with an episode.

        Raises:
            AuditError: None does, where the schedule has one.
        """
        output = self._face.output(episode)
        if output is None and episode <= self._due:
            message = f"{self._player.label}: its face shows no output in episode {episode}, in which one is declared"
            raise AuditError(message, trial=episode, seed=0)
        return output

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Returns what the last output's noise was added to, or None where nobody has it."""
        shown = self._face.exact(one, output)
        return None if shown is None else self._check(shown, "exact")

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns the last output."""
        return self._check(self._face.noisy(one, output), "noisy")

    def undeclared(self, one: Replicate) -> int:
        """Returns how many numbers stand on the billboard that no release declares."""
        return self._face.undeclared(one)

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Returns the messages of the last output as they left a shuffler; nothing where none are sent."""
        return self._face.messages(one, output) if isinstance(self._face, Shuffles) else ()

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Returns how many users the slices of an output are of, by release; nothing where no noise depends on that."""
        return self._face.batches(output) if isinstance(self._face, CountsUsers) else {}

    def contributions(self, before: Tables | None, after: Tables | None, message: Tables | None) -> Tables:
        """Returns what one user added to each release, where that can be told; nothing of batches.

        Nor of sums over values that another output has changed: of linear statistics only a tree keeps a user's own.

        Args:
            before: Exact values before the user's episode.
            after: And after it.
            message: What a local user sends.
        """
        schedules = [release.schedule for release in self._releases]
        if message is not None or all(isinstance(schedule, PerUser) for schedule in schedules):
            return message or after or {}
        if before is None or after is None or not all(isinstance(one, Tree | EveryEpisode) for one in schedules):
            return {}
        kept = {r.name for r in self._releases if isinstance(r.schedule, Tree) or not _regresses(r)}
        return {name: table - before[name] for name, table in after.items() if name in kept and name in before}

    def unlike(self, given: Tables, one: Replicate, user: Trajectories) -> Iterator[str]:
        """Yields the releases to which a user added something else than the declared statistic of what they did.

        Args:
            given: What was added.
            one: The replicate after the user's episode.
            user: What they did.
        """
        regressors = self._face.regressors(one, user) if isinstance(self._face, Regresses) else None
        for release in self._releases:
            if release.name in given and (regressors is not None or not _regresses(release)):
                statistic: Any = release.statistic
                wanted, table = statistic.compute(user if regressors is None else regressors), given[release.name]
                slack = _ROUNDING * (1 + float(np.abs(table).max(initial=0.0)))
                if not np.allclose(wanted, table, rtol=0, atol=slack):
                    yield release.name

    def _check(self, tables: Tables, kind: str) -> Tables:
        shapes = {name: np.shape(table) for name, table in tables.items()}
        due = {name: shape for name, shape in self._shapes.items() if name in shapes} if self._apart else self._shapes
        if shapes != due:
            message = f"{self._player.label}: its face shows {kind} tables {shapes}, declared are {self._shapes}"
            raise ParameterError(message, name="face", given=shapes)
        return tables


def _regresses(release: Release) -> bool:
    return isinstance(release.statistic, GramMatrices | FeatureSums)


def act(mdp: FiniteMDP, told: NDArray[np.int64] | Array) -> Trajectories | None:
    """Returns what a user of a world without chance did, told what to do; None where either leaves it to chance.

    Args:
        mdp: The user's response function.
        told: (H, S) actions, or (H, S, A) probabilities.
    """
    if told.ndim != 2 or mdp.transition.max(axis=-1).min() < 1 or not mdp.fixed_start:
        return None
    H, state = mdp.horizon, int(mdp.initial.argmax())
    states, actions, rewards = np.empty((1, H + 1), np.int32), np.empty((1, H), np.int32), np.empty((1, H))
    for h in range(H):
        action = int(told[h, state])
        following = int(mdp.transition[mdp.part(h), state, action].argmax())
        states[0, h], actions[0, h] = state, action
        rewards[0, h] = mdp.reward[mdp.part(h), state, action, following]
        state = following
    states[0, H] = state
    return Trajectories(states=states, actions=actions, rewards=rewards, num_states=mdp.states, num_actions=mdp.actions)


def _outputs(schedule: object, setting: Setting, episodes: int) -> int:
    """Returns until which episode one output leaves in each; 0 for batches, of which that is not declared."""
    if isinstance(schedule, Tree):
        return min(int(schedule.leaves.number(setting.values)), episodes - 1)
    if isinstance(schedule, EveryEpisode):
        often = schedule.after == "episode"
        return min(int(schedule.outputs.number(setting.values)), episodes - 1) if often else 0
    return episodes - 1 if isinstance(schedule, PerUser) else 0
