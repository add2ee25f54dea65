"""Agents that train a policy on users' episodes, as commands run them: the task's users, a request, and its result.

What a task, an agent and its parameters are is the agent's own affair; here they are handed on. The policies have
parameters, and are files of their own kind (`privcheck.reports.policies.Weights`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from privcheck.runtime.results import NoiseKind
from privcheck.support.display import Brief, Progress, silent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from privcheck.runtime.ledger import Ledger
    from privcheck.runtime.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Simulated(Brief):
    """Simulated users of a task with observations.

    Attributes:
        name: As users type it.
        description: In one sentence.
        task: The task's public facts, as agents take them.
        users: Makes the users of a seed, who play one episode each.
        steps: Largest number of steps of an episode.
        facts: Size and origin, for the report.
    """

    name: str
    description: str
    task: Any
    users: Callable[[int], Any]
    steps: int
    facts: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """Request for trainings of an agent, each with its twin without noise.

    Attributes:
        setting: Declaration, parameters, options and readings.
        world: The users.
        replicates: Independent repetitions.
        seed: Seed of the users and of simulated noise.
        noise: The noise source. With release noise there is no checkpoint.
        directory: Where the first replicate's ledger and the checkpoint are written, or None. A checkpoint of the same
            run there is continued.
        progress: Called with (batches done, total), over all replicates and twins.
    """

    setting: Setting
    world: Simulated
    replicates: int = 1
    seed: int = 0
    noise: NoiseKind = "simulated"
    directory: Path | None = None
    progress: Progress = silent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TrainingResult(Brief):
    """Result of trainings.

    Attributes:
        returns: (replicates,) mean return of each replicate's final policy, on fresh simulated users.
        twins: (replicates,) the same of the twins without noise.
        references: Mean returns of policies that learn nothing, on such users, by name.
        parameters: (d,) of the first replicate's final policy.
        form: What these are parameters of: the policy's kind and sizes, and how it sees observations.
        actions: Number of actions.
        evaluated: Number of fresh users of each figure.
        ledger: The first replicate's ledger.
        seconds: Wall time of the trainings, over all sessions if a checkpoint was continued.
    """

    returns: NDArray[np.float64]
    twins: NDArray[np.float64]
    references: Mapping[str, float]
    parameters: NDArray[np.float64]
    form: Mapping[str, Any]
    actions: int
    evaluated: int
    ledger: Ledger
    seconds: float


class TrainedAgent(Protocol):
    """A registered agent that trains a policy (`Algorithm.trained`)."""

    def agent(self, task: Any, options: Mapping[str, Fraction], readings: Mapping[str, str]) -> Any:
        """The agent for a task.

        Raises:
            ParameterError: An option is out of range.
        """
        ...

    def sizes(self, task: Any, options: Mapping[str, Fraction], readings: Mapping[str, str]) -> Mapping[str, int]:
        """Parameters of the declaration that follow from the task and the policy's form, by name."""
        ...

    def run(self, request: TrainingRequest) -> TrainingResult:
        """Train.

        Raises:
            ParameterError: The request is refused, or the directory holds the checkpoint of another run.
            PrivcheckError: The checkpoint cannot be read or written.
        """
        ...
