"""Replicates of an online run, in blocks of episodes, with checkpoints in the one format that all work resumes from.

A replicate is its arrays and its generators; a kernel plays it up to an episode and changes nothing else. Replicates
run on threads (the kernels hold no interpreter lock), each with its own randomness spawned from the seed, so that a
result depends neither on the number of threads nor on the number of replicates nor on where a run was interrupted.

A checkpoint holds all replicates after a block, under the run's fingerprint, in NumPy's archive format; it is written
to a temporary name and renamed. A file that was cut short or changed is detected by its own checksums and refused;
nothing in it is run. Killing a run loses the current block; if blocks are shorter than a second, also those since the
last checkpoint, about a second's work.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.charges import charge
from privcheck.errors import ParameterError, PrivcheckError
from privcheck.runtime.discretisation import as_drawn
from privcheck.runtime.ledger import FILE_NAME, Ledger
from privcheck.runtime.online import DONE, NOISELESS, MakePlayer, Player, Replicate, grid
from privcheck.runtime.results import OnlineRequest, OnlineResult
from privcheck.support.files import whole_file

SUFFIX: Final = ".npz"
_ABOUT: Final = "about"


def save_checkpoint(path: Path, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a checkpoint, whole or not at all.

    Args:
        path: Its name; the folder exists.
        about: JSON-encodable description, floats kept exactly; arrays in it become lists.
        arrays: By name.

    Raises:
        OSError: It cannot be written; the previous file is kept.
    """
    text = json.dumps(about, default=_list)
    with whole_file(path) as file:
        stored = {_ABOUT: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
        np.savez(file, **stored)  # type: ignore[arg-type] # typed as if a name could be `allow_pickle`


@contextmanager
def open_checkpoint(path: Path) -> Iterator[tuple[dict[str, Any], Mapping[str, NDArray[Any]]]]:
    """Yield the description of a checkpoint and its arrays, each of which is read on access.

    Raises:
        PrivcheckError: It cannot be read, or has another format.
    """
    try:
        # opened here: NumPy does not close a file whose archive it cannot read
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            yield json.loads(bytes(file[_ABOUT]).decode()), file
    except PrivcheckError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise PrivcheckError(f"{path}: not a readable checkpoint ({error}): delete it to start anew") from None


def _list(value: Any) -> Any:
    return value.tolist()


CHECKPOINT = "checkpoint.npz"
BLOCKS = 64  # a run has at most so many, and at least one every 2¹⁸ episodes …
_WORK = 8_000_000  # … and a block has at least so many counters times episodes, about 0.05 s
_MOST = 2_000_000_000  # … and at most so many, or one episode
_FORMAT = 2
_SAVE_EVERY = 1.0  # seconds: shorter blocks are not each written


def seeds(seed: int, replicate: int, *names: str) -> dict[str, np.random.SeedSequence]:
    """Seeds of a replicate's parts: the same for any number of replicates and of other parts.

    >>> one = seeds(7, 3, "users", "noise")["noise"]
    >>> one.generate_state(1).tolist() == seeds(7, 3, "noise")["noise"].generate_state(1).tolist()
    True
    """
    return {name: np.random.SeedSequence(seed, spawn_key=(replicate, *name.encode())) for name in names}


def run(make: MakePlayer, request: OnlineRequest, *, noiseless: bool = False) -> OnlineResult:
    """Run all replicates of an online agent, with its ledger if it declares something.

    Args:
        make: Makes the agent, as it is registered.
        request: The requested run.
        noiseless: Whether to run the agent's noiseless twin; the ledger then says that nothing is protected.

    Raises:
        ParameterError: The agent refuses the request, or the directory holds the checkpoint of another run.
        PrivcheckError: The checkpoint cannot be read or written.
    """
    if request.noise == "release" and request.setting.drawn is None:
        drawn = as_drawn(request.setting.declared, request.values, prices=request.setting.prices)
        request = replace(request, setting=request.setting.drawing(drawn))
    player = ready(make, request, noiseless=noiseless)
    if request.noise == "release" and not player.protects:
        message = f"{request.setting.declared.name} draws only simulated noise; it has no release noise"
        raise ParameterError(message, name="noise", given="release")
    refuse_other(request, player.label)
    ledger = None if request.declaration is None else open_ledger(request, player, noiseless=noiseless)
    try:
        replicates, seconds = learn(request, player, ledger)
        if ledger is not None:
            ledger.close()
    except BaseException:  # an interrupt too: the record of what was spent stays, marked as partial
        if ledger is not None:
            ledger.abandon()
        raise
    return read_result(request, player, replicates, seconds=seconds, ledger=ledger)


def run_without_noise(make: MakePlayer, request: OnlineRequest) -> OnlineResult:
    """Run all replicates of an agent that draws no noise, without a ledger: nothing is protected, or spent.

    Raises:
        ParameterError: The agent refuses the request.
    """
    player = ready(make, request, noiseless=True)
    replicates, seconds = learn(request, player)
    return read_result(request, player, replicates, seconds=seconds, ledger=None)


def ready(make: MakePlayer, request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Make the agent in the request's world, ready to play.

    Raises:
        ParameterError: The agent refuses the request, or the registered function does not make a Player.
    """
    player: object = make(request, noiseless=noiseless)
    if not isinstance(player, Player):
        message = f"expected the agent to make a Player (privcheck.runtime.online), got {type(player).__name__}"
        raise ParameterError(message, name="online", given=type(player).__name__)
    return player


def open_ledger(request: OnlineRequest, player: Player, *, noiseless: bool) -> Ledger:
    """Open the first replicate's ledger, before anything is drawn.

    If releases do not write it themselves it is a plan of everything the run will spend, from the declaration and not
    from the draws: the cost of a killed run is never understated, and the noise view audits that the agent draws what
    is declared. A release is a stream of noisy tables, charged as a whole with its first slice; its entries name the
    stream by the run's fingerprint. A run that is killed and continued writes the same lines again.
    """
    declaration, values = request.setting.released, request.values
    path = None if request.directory is None else request.directory / FILE_NAME
    words, planned = NOISELESS if noiseless else player.noise, player.keep_ledger is None
    fresh = not noiseless and not declaration.shared_draws  # outputs that share a draw differ by exact data
    ledger = Ledger(
        declaration,
        values,
        noise=words,
        as_declared=fresh,
        protects=player.protects,
        path=path,
        planned=planned,
        unit=request.setting.protected,
    )
    mark = fingerprint(request, player.label)
    for release in declaration.noisy if planned else ():
        for part in range(release.statistic.shape(values)[0]):
            due = charge(release, declaration.relation, values) if part == 0 else None
            ledger.record(release.name, part, charge=due, output=f"stream {mark}")
    return ledger


def learn(request: OnlineRequest, player: Player, ledger: Ledger | None = None) -> tuple[list[Replicate], float]:
    """Play all replicates to episode K, and return them with the seconds it took over all sessions.

    Args:
        request: The requested run; used here are K, the replicates, the directory, the threads and the progress.
        player: The agent.
        ledger: The ledger that the first replicate's releases write, if they do.

    Raises:
        ParameterError: The directory holds the checkpoint of another run.
        PrivcheckError: The checkpoint cannot be read or written.
    """
    start, play = player.start, player.play
    K, mark = request.episodes, fingerprint(request, player.label)
    seeded = request.noise == "simulated"  # release noise has no state to go on from
    path = None if request.directory is None or not seeded else request.directory / CHECKPOINT
    if seeded:
        play(start(0), 1)  # compiles what is not compiled, which is not learning
    replicates = [start(number) for number in range(request.replicates)]
    before = 0.0 if path is None else _load(path, replicates, mark)
    if player.keep_ledger is not None and ledger is not None:
        player.keep_ledger(ledger, replicates[0])
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


def read_result(
    request: OnlineRequest, player: Player, replicates: Sequence[Replicate], *, seconds: float, ledger: Ledger | None
) -> OnlineResult:
    """Result of a run from the replicates' records; the policy is that of the first replicate's last user."""
    curves = np.stack([one.arrays["curves"] for one in replicates])
    arrays = replicates[0].arrays
    told = arrays[player.told]
    policy = told.copy() if told.ndim == 3 else np.eye(request.world.mdp.actions)[told]
    return OnlineResult(
        episodes=grid(request.episodes).copy(),
        regret=curves[:, 0],
        value=curves[:, 1],
        switches=curves[:, 2],
        optimal=player.optimal,
        policy=policy,
        ledger=ledger,
        diagnostics=dict(player.diagnostics),
        seconds=seconds,
        at_limit=None if player.at_limit is None else float(np.mean([player.at_limit(one) for one in replicates])),
    )


def fingerprint(request: OnlineRequest, label: str) -> str:
    """Digest of all inputs that a run's numbers depend on."""
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
    features = request.world.features
    known = () if features is None else (features.phi, *(() if features.kernels is None else (features.kernels,)))
    for array in (mdp.transition, mdp.mean_reward, mdp.initial, *known):
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data.cast("B"))
    return digest.hexdigest()


def _save(path: Path, replicates: list[Replicate], mark: str, seconds: float) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    states = []
    for number, one in enumerate(replicates):
        arrays |= {f"{number}/{name}": array for name, array in one.arrays.items()}
        states.append({name: rng.bit_generator.state for name, rng in one.generators.items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(path, {"fingerprint": mark, "seconds": seconds, "generators": states}, arrays)
    except OSError as error:
        kept = "the one before is kept: the same command continues from it" if path.exists() else "none was before"
        raise PrivcheckError(f"{path}: the checkpoint cannot be written: {error.strerror or error}; {kept}") from error


def refuse_other(request: OnlineRequest, label: str) -> None:
    """Refuse a directory with the checkpoint of another run, before anything is written there.

    Raises:
        ParameterError: The directory holds such a checkpoint.
        PrivcheckError: The checkpoint cannot be read.
    """
    if request.directory is not None:
        _load(request.directory / CHECKPOINT, [], fingerprint(request, label))


def _load(path: Path, replicates: list[Replicate], mark: str) -> float:
    """Load a checkpoint into fresh replicates; returns the seconds spent so far, 0 without a checkpoint."""
    if not path.exists():
        return 0.0
    with open_checkpoint(path) as (about, arrays):
        if about["fingerprint"] != mark:
            message = (
                f"{path} is the checkpoint of another run (other algorithm, parameters, options, environment, seed "
                "or number of replicates): choose another --out, or delete it"
            )
            raise ParameterError(message, name="out", given=str(path))
        for number, one in enumerate(replicates):
            for name, array in one.arrays.items():
                array[...] = arrays[f"{number}/{name}"]
            for name, rng in one.generators.items():
                rng.bit_generator.state = about["generators"][number][name]
        return float(about["seconds"])
