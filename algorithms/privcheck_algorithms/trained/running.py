"""Runs of trained agents behind `privcheck run`: policies from options, replicates, twins, checkpoints, files.

A checkpoint has the noisy sums of all finished batches and nothing else: states are functions of them, so that a run
that was stopped goes on without another episode of those who have played, to the same result. It is written when a
second has passed since the last one, and when the run is stopped.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.policies import Weights, load_learned
from privcheck.runtime.ledger import FILE_NAME
from privcheck.runtime.noise import NoiseSource
from privcheck.runtime.registry import AuditInstance, Reading
from privcheck.runtime.replicates import CHECKPOINT, open_checkpoint, save_checkpoint, seeds
from privcheck.runtime.trained import Simulated, TrainingRequest, TrainingResult
from privcheck.terms.parameters import Parameter
from privcheck_algorithms.trained.policies import (
    DosePolicy,
    LinearPolicy,
    MirrorPolicy,
    Policy,
    TanhPolicy,
    greedy,
    most_likely,
)
from privcheck_algorithms.trained.tasks import Array, Choose, Indices, Task
from privcheck_algorithms.trained.training import (
    Agent,
    Sums,
    Training,
    Users,
    no_noise,
    release_noise,
    simulated_noise,
    train,
)

Make = Callable[[Task, Policy, Mapping[str, Fraction]], Agent[Any]]

_EVALUATED: Final = 200  # fresh users of each figure
_SAVE_EVERY: Final = 1.0  # seconds
_FORMAT: Final = 1
_KINDS: Final = {"dose": DosePolicy, "linear": LinearPolicy, "mirror": MirrorPolicy, "tanh": TanhPolicy}

# an audit's instance: few users, and so little noise that policies follow the sums
SMALL: Final = AuditInstance(sizes={"K": 240, "B": 40}, values={"mu": Fraction(20)})
POLICY_NAME: Final = "policy"
UNITS: Final = Parameter(name="units", default=16, kind="count", meaning="hidden units of a policy with tanh units")


def policy_reading(*ways: str) -> Reading:
    """The choice of a policy's form, the first by default: tanh, linear or linear-without-constant."""
    return Reading(name=POLICY_NAME, ways=ways, meaning="form of the policy")


def make_policy(task: Task, options: Mapping[str, Fraction], readings: Mapping[str, str]) -> Policy:
    """The policy of the chosen form for a task."""
    inputs, actions, way = task.inputs, len(task.actions), readings[POLICY_NAME]
    if way == "tanh":
        return TanhPolicy(inputs=inputs, actions=actions, units=int(options["units"]))
    return LinearPolicy(inputs=inputs, actions=actions, constant=way == "linear")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A trained agent as `privcheck.runtime.registry.Algorithm.trained`.

    Attributes:
        make: Makes the agent from a task, a policy and its options.
    """

    make: Make

    def agent(self, task: Task, options: Mapping[str, Fraction], readings: Mapping[str, str]) -> Agent[Any]:
        """The agent for a task.

        Raises:
            ParameterError: An option is out of range.
        """
        return self.make(task, make_policy(task, options, readings), options)

    def sizes(self, task: Task, options: Mapping[str, Fraction], readings: Mapping[str, str]) -> Mapping[str, int]:
        """d, the coordinates of a user's vector."""
        return {"d": sum(self.agent(task, options, readings).blocks.values())}

    def run(self, request: TrainingRequest) -> TrainingResult:
        """Train, with the twin without noise of every replicate.

        Raises:
            ParameterError: The request is refused, or the directory holds the checkpoint of another run.
            PrivcheckError: The checkpoint cannot be read or written.
        """
        setting, task = request.setting, request.world.task
        policy = make_policy(task, setting.options, setting.readings)
        agent = self.make(task, policy, setting.options)
        kept = _Kept.open(request)
        began = time.perf_counter()
        trainings: dict[tuple[str, int], Training[Any]] = {}
        try:
            for number in range(request.replicates):
                for kind in ("private", "twin"):
                    trainings[kind, number] = _train(request, agent, kind, number, kept)
        except BaseException:  # an interrupt too: what is finished is kept
            kept.save(time.perf_counter() - began)
            raise
        seconds = kept.save(time.perf_counter() - began)
        worth = [
            [_mean_return(request, policy, trainings[kind, number].parameters, number) for kind in ("private", "twin")]
            for number in range(request.replicates)
        ]
        returns, twins = np.array(worth).T
        first = trainings["private", 0]
        return TrainingResult(
            returns=returns,
            twins=twins,
            references={
                "random": _played(request.world, _at_random(len(task.actions)), _seed(request, 0, "evaluation")),
                "untrained": _mean_return(request, policy, policy.initial(), 0),
            },
            parameters=first.parameters,
            form=form_of(policy, task),
            actions=len(task.actions),
            evaluated=_EVALUATED,
            ledger=first.ledger,
            seconds=seconds,
        )


def _train(request: TrainingRequest, agent: Agent[Any], kind: str, number: int, kept: _Kept) -> Training[Any]:
    """One training; that of the twin has the same users."""
    setting, private = request.setting, kind == "private"
    noise: Callable[[int], NoiseSource] = no_noise
    if private:
        noise = release_noise if request.noise == "release" else simulated_noise(_seed(request, number, "noise"))
    recorded = private and number == 0 and request.directory is not None
    return train(
        agent,
        request.world.users(_seed(request, number, "users")),
        declaration=setting.declared,
        values=setting.values,
        noise=noise,
        drawn=setting.released if private else setting.declared,
        ledger=request.directory / FILE_NAME if recorded and request.directory is not None else None,
        steps=request.world.steps,
        unit=setting.protected,
        finished=kept.finished(kind, number),
        keep=lambda batch, sums: kept.add(kind, number, batch, sums),
    )


def _seed(request: TrainingRequest, replicate: int, name: str) -> int:
    low, high = seeds(request.seed, replicate, name)[name].generate_state(2).tolist()
    return int(low) | int(high) << 32


def _mean_return(request: TrainingRequest, policy: Policy, parameters: Array, replicate: int) -> float:
    """Mean return of the most likely actions, of fresh users."""
    return _played(request.world, most_likely(policy, parameters), _seed(request, replicate, "evaluation"))


def _played(world: Simulated, choose: Choose, seed: int) -> float:
    users: Users = world.users(seed)
    return float(users.play(choose, range(_EVALUATED)).returns.mean())


def _at_random(actions: int) -> Choose:
    return lambda _, uniforms, __: np.minimum((uniforms * actions).astype(np.int64), actions - 1)


def form_of(policy: Policy, task: Task) -> dict[str, Any]:
    """What parameters are of: the policy's kind and sizes, how observations are scaled, the numbers of the actions."""
    kinds = {kind: name for name, kind in _KINDS.items()}
    parts: Any = policy
    seen = {"centre": list(task.centre), "scale": list(task.scale), "numbers": list(task.actions)}
    return {"kind": kinds[type(policy)], "inputs": task.inputs, **asdict(parts), **seen}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedPolicy:
    """A trained policy, ready to act.

    Attributes:
        policy: Its form.
        parameters: (d,).
        centre: (inputs,) subtracted from observations …
        scale: (inputs,) … which are then divided by it.
        numbers: The environment's numbers of the actions.
    """

    policy: Policy
    parameters: Array
    centre: Array
    scale: Array
    numbers: Indices

    def act(self, observation: NDArray[Any]) -> int:
        """The number of the most likely action at an observation (inputs,), unscaled as the environment gives it.

        Raises:
            ParameterError: The observation has another shape, or is not finite.
        """
        seen = np.asarray(observation, np.float64)
        if seen.shape != self.centre.shape or not np.isfinite(seen).all():
            message = f"expected {self.centre.size} finite numbers as an observation, got {observation!r:.80}"
            raise ParameterError(message, name="observation")
        scaled = ((seen - self.centre) / self.scale)[np.newaxis]
        return int(self.numbers[greedy(self.policy.logits(self.parameters, scaled))[0]])


def load_trained(path: Path | str) -> LearnedPolicy:
    """Load the policy on observations that `run` wrote.

    Args:
        path: Its policy.npz, its policy.json, or the directory of both, or of the run.

    Raises:
        FileFormatError: A file is missing, damaged, does not belong to the other, or has another kind of policy.
    """
    loaded = load_learned(path)
    form = dict(loaded.record.form or {}) if isinstance(loaded, Weights) else {}
    kind = _KINDS.get(str(form.pop("kind", "")))
    if kind is None or not isinstance(loaded, Weights):
        raise FileFormatError(f"{path}: not a policy on observations of a form known here: {', '.join(_KINDS)}")
    centre, scale, numbers = (form.pop(name) for name in ("centre", "scale", "numbers"))
    own = {one.name for one in fields(kind)}
    parts = {name: tuple(value) if isinstance(value, list) else value for name, value in form.items() if name in own}
    return LearnedPolicy(
        policy=kind(**parts),
        parameters=loaded.parameters,
        centre=np.array(centre, np.float64),
        scale=np.array(scale, np.float64),
        numbers=np.array(numbers, np.int64),
    )


@dataclass(slots=True, kw_only=True)
class _Kept:
    """Noisy sums of finished batches, in memory and in the checkpoint.

    Attributes:
        path: The checkpoint; None to write none.
        mark: Digest of all that the sums depend on.
        before: Seconds of earlier sessions.
        total: Batches of the whole run.
        report: Called with (batches done, total).
    """

    path: Path | None
    mark: str
    total: int
    report: Callable[[int, int], None]
    before: float = 0.0
    sums: dict[tuple[str, int], list[Sums]] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)
    saved: float = field(default_factory=time.perf_counter)

    @classmethod
    def open(cls, request: TrainingRequest) -> _Kept:
        """Read the checkpoint of the same run, if there is one.

        Raises:
            ParameterError: It is of another run.
            PrivcheckError: It cannot be read.
        """
        values = request.setting.values
        batches = int(values["K"]) // int(values["B"])
        path = None if request.directory is None or request.noise == "release" else request.directory / CHECKPOINT
        kept = cls(
            path=path, mark=_fingerprint(request), total=2 * request.replicates * batches, report=request.progress
        )
        if path is not None and path.exists():
            with open_checkpoint(path) as (about, arrays):
                if about["fingerprint"] != kept.mark:
                    message = f"{path} is the checkpoint of another run: choose another --out, or delete it"
                    raise ParameterError(message, name="out", given=str(path))
                kept.before = float(about["seconds"])
                for kind, number, names in about["trainings"]:
                    stacks = {name: arrays[f"{kind}/{number}/{name}"] for name in names}
                    done = min(len(stack) for stack in stacks.values())
                    kept.sums[kind, number] = [{n: s[batch] for n, s in stacks.items()} for batch in range(done)]
        return kept

    def finished(self, kind: str, number: int) -> list[Sums]:
        """Sums of a training's first batches."""
        found = list(self.sums.get((kind, number), ()))
        self.sums[kind, number] = list(found)
        self.report(self.done, self.total)
        return found

    @property
    def done(self) -> int:
        """Number of finished batches, of all trainings."""
        return sum(map(len, self.sums.values()))

    def add(self, kind: str, number: int, batch: int, sums: Sums) -> None:
        """Keep the sums of the next batch of a training."""
        own = self.sums[kind, number]
        assert batch == len(own)
        own.append(sums)
        self.report(self.done, self.total)
        now = time.perf_counter()
        if now - self.saved >= _SAVE_EVERY:
            self.save(now - self.began)

    def save(self, seconds: float) -> float:
        """Write the checkpoint, and return the seconds of all sessions."""
        whole = self.before + seconds
        if self.path is not None and self.done:
            arrays, trainings = dict[str, NDArray[Any]](), []
            for (kind, number), sums in self.sums.items():
                if sums:
                    trainings.append((kind, number, list(sums[0])))
                    arrays |= {f"{kind}/{number}/{name}": np.stack([one[name] for one in sums]) for name in sums[0]}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            about = {"fingerprint": self.mark, "seconds": whole, "trainings": trainings}
            save_checkpoint(self.path, about, arrays)
        self.saved = time.perf_counter()
        return whole


def _fingerprint(request: TrainingRequest) -> str:
    """Digest of all that the sums depend on."""
    setting, task = request.setting, request.world.task
    about = {
        "format": _FORMAT,
        "algorithm": setting.declared.name,
        "task": [request.world.name, task.limit, task.centre, task.scale, task.actions, task.rewards, task.signal],
        "values": {name: str(value) for name, value in sorted(setting.values.items())},
        "options": {name: str(value) for name, value in sorted(setting.options.items())},
        "readings": dict(sorted(setting.readings.items())),
        "replicates": request.replicates,
        "seed": request.seed,
    }
    return hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16).hexdigest()
