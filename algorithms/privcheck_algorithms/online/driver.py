"""Replicates of an online run, in blocks of episodes, with checkpoints.

A replicate is its arrays and its generators; a kernel plays it up to an episode and changes nothing else. Replicates
run on threads (the kernels hold no interpreter lock), each with randomness of its own spawned from the seed, so that a
result depends neither on the number of threads nor on how many replicates there are nor on where a run was cut.

A checkpoint holds all replicates after a block, under the run's fingerprint; it is written to a temporary name and
renamed. Killing a run loses the current block; where blocks are shorter than a second, also those since the last
checkpoint, about a second's work.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError, PrivcheckError
from privcheck.results import OnlineRequest
from privcheck.whole_files import whole_file
from privcheck_algorithms.online.recording import DONE
from privcheck_algorithms.planning import Optimum

CHECKPOINT = "checkpoint.npz"
BLOCKS = 64  # a run has at most so many, and at least one every 2¹⁸ episodes …
_WORK = 8_000_000  # … and a block has at least so many counters times episodes, about 0.05 s
_MOST = 2_000_000_000  # … and at most so many, or one episode
_FORMAT = 2
_SAVE_EVERY = 1.0  # seconds: shorter blocks are not each written


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicate:
    """One repetition of a run, between two blocks.

    Attributes:
        arrays: Everything that changes, by name; `totals`, `curves` and `actions` or `policy` among them.
        generators: Where its randomness stands, by name.
    """

    arrays: Mapping[str, NDArray[Any]]
    generators: Mapping[str, np.random.Generator]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Player:
    """An agent in its world, ready to play: what `learn` and the auditors of whole agents drive.

    Attributes:
        start: Makes a replicate before its first episode, by its number.
        play: Plays a replicate up to and with an episode.
        label: Which kernel and which world this is; part of the fingerprint.
        truth: The world's optimum.
        diagnostics: The privatizer's numbers, by name.
    """

    start: Callable[[int], Replicate]
    play: Callable[[Replicate, int], None]
    label: str
    truth: Optimum
    diagnostics: Mapping[str, float]


def seeds(seed: int, replicate: int, *names: str) -> dict[str, np.random.SeedSequence]:
    """Returns the seeds of a replicate's parts: the same whatever the number of replicates and of other parts.

    >>> one = seeds(7, 3, "users", "noise")["noise"]
    >>> one.generate_state(1).tolist() == seeds(7, 3, "noise")["noise"].generate_state(1).tolist()
    True
    """
    return {name: np.random.SeedSequence(seed, spawn_key=(replicate, *name.encode())) for name in names}


def learn(
    request: OnlineRequest, *, start: Callable[[int], Replicate], play: Callable[[Replicate, int], None], label: str
) -> tuple[list[Replicate], float]:
    """Returns all replicates after K episodes, and the seconds it took over all sittings.

    Args:
        request: What to run; of it K, the replicates, the directory, the threads and the progress are used here.
        start: Makes a replicate, by its number.
        play: Plays a replicate up to and with an episode.
        label: Which kernel and which world this is; part of the fingerprint.

    Raises:
        ParameterError: The directory holds the checkpoint of another run.
        PrivcheckError: The checkpoint cannot be read or written.
    """
    K, mark = request.episodes, fingerprint(request, label)
    path = None if request.directory is None else request.directory / CHECKPOINT
    play(start(0), 1)  # compiles what is not compiled, which is not learning
    replicates = [start(number) for number in range(request.replicates)]
    before = 0.0 if path is None else _load(path, replicates, mark)
    began = saved = time.perf_counter()
    mdp = request.world.mdp
    counters = mdp.horizon * mdp.states * mdp.actions * (mdp.states + 2)
    block = max(1, min(2**18, _MOST // counters, max(_WORK // counters, -(-K // BLOCKS))))
    done = int(min(r.arrays["totals"][DONE] for r in replicates))
    with ThreadPoolExecutor(max_workers=max(1, min(request.workers, len(replicates)))) as pool:
        while done < K:
            done = min(K, done + block)
            list(pool.map(lambda one, until=done: play(one, until), replicates))
            now = time.perf_counter()
            if path is not None and (now - saved >= _SAVE_EVERY or done == K):
                _save(path, replicates, mark, before + now - began)
                saved = now
            request.progress(done * len(replicates), K * len(replicates))
    return replicates, before + time.perf_counter() - began


def fingerprint(request: OnlineRequest, label: str) -> str:
    """Returns a digest of all that a run's numbers depend on."""
    mdp = request.world.mdp
    digest = hashlib.blake2b(digest_size=16)
    about = {
        "format": _FORMAT,
        "label": label,
        "declaration": None if request.declaration is None else request.declaration.name,
        "values": {name: str(value) for name, value in sorted(request.values.items())},
        "options": {name: str(value) for name, value in sorted(request.options.items())},
        "readings": dict(sorted(request.readings.items())),
        "episodes": request.episodes,
        "replicates": request.replicates,
        "seed": request.seed,
        "horizon": mdp.horizon,
    }
    digest.update(json.dumps(about, sort_keys=True).encode())
    for array in (mdp.transition, mdp.mean_reward, mdp.initial):
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data.cast("B"))
    return digest.hexdigest()


def _save(path: Path, replicates: list[Replicate], mark: str, seconds: float) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    states = []
    for number, one in enumerate(replicates):
        arrays |= {f"{number}/{name}": array for name, array in one.arrays.items()}
        states.append({name: rng.bit_generator.state for name, rng in one.generators.items()})
    about = json.dumps({"fingerprint": mark, "seconds": seconds, "generators": states}, default=_listed)
    arrays["about"] = np.frombuffer(about.encode(), dtype=np.uint8)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type] # typed as if a name could be `allow_pickle`
    except OSError as error:
        kept = "the one before is kept: the same command continues from it" if path.exists() else "none was before"
        raise PrivcheckError(f"{path}: the checkpoint cannot be written: {error.strerror or error}; {kept}") from None


def refuse_other(request: OnlineRequest, label: str) -> None:
    """Refuses a directory with the checkpoint of another run, before anything is written there.

    Raises:
        ParameterError: It holds one.
        PrivcheckError: The checkpoint cannot be read.
    """
    if request.directory is not None:
        _load(request.directory / CHECKPOINT, [], fingerprint(request, label))


def _listed(value: Any) -> Any:
    return value.tolist()


def _load(path: Path, replicates: list[Replicate], mark: str) -> float:
    """Puts a checkpoint's content into fresh replicates; returns the seconds it took, 0 where there is none."""
    if not path.exists():
        return 0.0
    try:
        # opened here: NumPy does not close a file whose archive it cannot read
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            about = json.loads(bytes(file["about"]).decode())
            if about["fingerprint"] != mark:
                message = (
                    f"{path} is the checkpoint of another run (other algorithm, parameters, options, environment, seed "
                    "or number of replicates): choose another --out, or delete it"
                )
                raise ParameterError(message, name="out", given=str(path))
            for number, one in enumerate(replicates):
                for name, array in one.arrays.items():
                    array[...] = file[f"{number}/{name}"]
                for name, rng in one.generators.items():
                    rng.bit_generator.state = about["generators"][number][name]
            return float(about["seconds"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, ParameterError):
            raise
        raise PrivcheckError(f"{path}: not a readable checkpoint ({error}): delete it to start anew") from None
