"""The agent of SDP-PE (Bai et al. 2024, Algorithms 1 to 3), its non-private variant, and its audit adapter.

The player walks the segments of `batches`. At the beginning of each, the server's side (`Analyser`) computes the users'
mixture of policies from the billboard alone; `kernels.serve` runs the users; at the end their bits pass the shuffler
(`batches`). The README maps the paper's lines to the code and lists deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.declare.declaration import Parameter
from privcheck.declare.mechanisms import ShuffledNoise
from privcheck.runtime.online import DONE, SWITCHES, Player, Record, Replicate, Sent, Tables, blank, grid
from privcheck.runtime.registry import Reading
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, compress, value_anew
from privcheck_algorithms.online.private import refuse, refuse_bytes
from privcheck_algorithms.sdp_pe.batches import (
    HONEST,
    NOTHING,
    Protocol,
    Segment,
    Shuffled,
    bound_noise,
    count_messages,
    list_segments,
    mean_of,
    settle,
)
from privcheck_algorithms.sdp_pe.kernels import (
    UNDECIDED,
    Constants,
    Counted,
    Dealt,
    compute_width,
    estimate,
    estimate_rewards,
    serve,
)
from privcheck_algorithms.sdp_pe.policy_sets import Mixture, PolicySet, choose_set, cover, mix

FINE = ("visits", "transitions", "rewards")
CRUDE = ("crude visits", "crude transitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFace:
    """Adapter with two outputs per stage: of all steps' shufflers in crude exploration, and of fine exploration.

    Attributes:
        segments: The users of every stage.
        stages: Number of stages.
        noise: Declared noise behind a shuffler, by its number of users.
        sends: Whether every message of a segment's batch is sent.
    """

    segments: tuple[Segment, ...]
    stages: int
    noise: Callable[[int], ShuffledNoise]
    sends: Callable[[Segment], bool]
    policy: tuple[str, ...] = ("actions", "dealt", "until", "model", "rewarded")
    board: tuple[str, ...] = (*CRUDE, *FINE, "left crude", "left fine")

    def output(self, episode: int) -> int | None:
        """Number of the half-stage that ends with the episode; None if there is none."""
        for one, following in zip(self.segments, (*self.segments[1:], None), strict=True):
            if one.last == episode:
                more = following is not None and following.part == "crude" and one.part == "crude"
                return _number(one) if one.leaves and not more else None
        return None

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Sums of the users' own bits, of the current half-stage or the one that has just ended."""
        return {name: one.arrays[f"exact {name}"].copy() for name in _names(output)}

    def noisy(self, one: Replicate, output: int) -> Tables:
        """The analyser's estimates of an output."""
        stage = min(max(output - 1, 0) // 2, self.stages - 1)
        return {name: one.arrays[name][stage].copy() for name in _names(output)}

    def undeclared(self, one: Replicate) -> int:
        """Number of undeclared values in the stages' tables."""
        names = (*CRUDE, *FINE)
        return sum(int(one.arrays[n].size) - self.stages * int(one.arrays[f"exact {n}"].size) for n in names)

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Number of users behind the shuffler of every slice, by release; 0 without users."""
        halves = [one for one in self.segments if one.leaves and _number(one) == output]
        steps = max((one.step for one in self.segments), default=0) + 1
        if output % 2 == 0:
            return dict.fromkeys(FINE, (halves[0].batch,))
        users = {one.step: one.batch for one in halves}
        return dict.fromkeys(CRUDE, tuple(users.get(h, 0) for h in range(steps)))

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Messages of the latest output; empty for batches of which only sums are drawn."""
        sent = []
        for half in self.segments:
            if half.leaves and _number(half) == output and self.sends(half):
                left = one.arrays["left crude"][half.step] if half.part == "crude" else one.arrays["left fine"]
                sent += self._split(one, half, left)
        return tuple(sent)

    def _split(self, one: Replicate, half: Segment, left: NDArray[np.int8]) -> list[Sent]:
        law, begun, sent = self.noise(half.batch), 0, []
        for name in _names(_number(half)):
            table = one.arrays[f"exact {name}"]
            counters = table[half.step].size if half.part == "crude" else table.size
            sent.append(
                Sent(
                    release=name,
                    messages=left[begun : begun + counters].copy(),
                    due=count_messages(law, half.batch),
                    users=half.batch,
                    part=half.step if half.part == "crude" else None,
                    largest=law.bits[0] + 1 if law.integers else 1,
                    mean=mean_of(law),
                )
            )
            begun += counters
        return sent


def _number(half: Segment) -> int:
    return 2 * half.stage + (1 if half.part == "crude" else 2)


def _names(output: int) -> tuple[str, ...]:
    return CRUDE if output % 2 else FINE


Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analyser:
    """The server's side: its public knowledge, and how it makes mixtures from the billboard.

    Attributes:
        constants: Constants of estimates and eliminations.
        chosen: φ_b.
        initial: (S,) law of the first state, public.
        lengths: L_b.
    """

    constants: Constants
    chosen: PolicySet
    initial: Array
    lengths: tuple[int, ...]

    def begin(self, a: Arrays, now: Segment, ties: np.random.Generator) -> Mixture:
        """Make the mixture for a segment's users; state for later segments is in the arrays."""
        if now.part == "crude":
            return self._explore_crudely(a, now, ties)
        if now.part == "fine":
            return self._explore_finely(a, now.stage, ties)
        if now.part == "auxiliary":  # Algorithm 2, line 12
            kept = int(a["auxiliaries"][0])
            return Mixture(policies=a["auxiliary"][:kept], shares=a["auxiliary shares"][:kept])
        return self.chosen.find(a, a["model"], a["rewarded"], ties)

    def conclude(self, a: Arrays, stage: int) -> None:
        """Eliminate policies after fine exploration (Algorithm 3, lines 5 to 8; Algorithm 1, lines 7 to 13).

        As printed, line 6 reuses 𝒲 of crude exploration: the tuples that the stage's crude model leaves out.
        """
        c = self.constants
        for h in range(c.H):
            frequent = a["crude"][h] > 0.0 if c.printed else UNDECIDED
            known = estimate(a["visits"][stage, h], a["transitions"][stage, h], c, frequent, a["model"][h])
            estimate_rewards(a["rewards"][stage, h], known, a["rewarded"][h])
        self.chosen.eliminate(a, a["model"], a["rewarded"], compute_width(c, self.lengths[stage]))

    def _explore_crudely(self, a: Arrays, now: Segment, ties: np.random.Generator) -> Mixture:
        """Mixture of crude exploration (Algorithm 2, lines 3 to 6), by the steps before (lines 8 to 10)."""
        c, h = self.constants, now.step
        self._take_crude(a, now.stage, h)
        if h == 0:
            a["auxiliaries"][0] = 0.0
        parts = []
        for s in range(c.S):
            for action in range(c.A):
                wanted = np.zeros((h + 1, c.S, c.A))
                wanted[h, s, action] = 1.0
                parts.append(self.chosen.find(a, a["crude"], wanted, ties))
        mixed = mix(parts)
        begun, end = int(a["auxiliaries"][0]), int(a["auxiliaries"][0]) + len(mixed.shares)
        a["auxiliary"][begun:end] = mixed.policies
        a["auxiliary shares"][begun:end] = mixed.shares
        a["auxiliaries"][0] = end
        return mixed

    def _explore_finely(self, a: Arrays, stage: int, ties: np.random.Generator) -> Mixture:
        """Mixture of equation (4) in the crude model (Algorithm 3, line 1)."""
        self._take_crude(a, stage, self.constants.H)
        kept = int(a["auxiliaries"][0])
        a["auxiliary shares"][:kept] /= a["auxiliary shares"][:kept].sum()
        start = Mixture(policies=a["auxiliary"][:kept].copy(), shares=a["auxiliary shares"][:kept].copy())
        found, a["coverage"][0] = cover(
            start, lambda reward: self.chosen.find(a, a["crude"], reward, ties), a["crude"], self.initial
        )
        return found

    def _take_crude(self, a: Arrays, stage: int, steps: int) -> None:
        """Compute the crude model of the known steps from the billboard."""
        a["crude"][...] = 0.0
        for h in range(steps):
            visits, following = (a[name][stage, h] for name in CRUDE)
            estimate(visits, following, self.constants, UNDECIDED, a["crude"][h])


POLICIES = Reading(
    name="policies",
    ways=("explicit", "implicit"),
    meaning="how the policies that are left are kept: explicit: a bit each; implicit: the last stage's constraint",
)
CONSTANTS = Reading(
    name="constants",
    ways=("scaled", "printed"),
    meaning="scaled: cuts and widths in standard deviations of the noise, and fine counts decide again which tuples "
    "are too rare; printed: C₁·E·H²ι and X³AH⁵·E·ι/L, and crude exploration decides it",
)
OPTIONS = (
    Parameter(name="width", default="0.005", kind="real", meaning="C of the elimination's width; the paper's proof: 1"),
    Parameter(
        name="noise_width",
        default="0.2",
        kind="real",
        meaning="with constants=scaled: D of the elimination's width, the factor of what the noise bits do to a value",
    ),
    Parameter(name="cut", default=1, kind="real", meaning="counts are too rare below so many std, or C₁·E·H²ι"),
    Parameter(name="failure", default="0.1", kind="probability", meaning="δ, with which bounds on the noise fail"),
    Parameter(
        name="messages",
        default=100_000,
        kind="real",
        meaning="batches of up to so many messages are sent bit by bit; of larger ones the exact law of sums is drawn",
    ),
)


def player(request: OnlineRequest, *, noiseless: bool = False, protocol: Protocol = HONEST) -> Player:
    """Player of SDP-PE in its world, or of policy elimination without a declaration.

    Args:
        request: The request.
        noiseless: Whether to draw no noise bits; the agent plans as with them.
        protocol: Protocol of the users and the shuffler.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, or policy bits, tables or messages beyond 8 GB.
    """
    refuse(request, vectors=0)
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    segments = list_segments(K, H, remainder=request.readings.get("remainder", "last"))
    lengths = tuple(one.batch // 2 for one in segments if one.part == "fine")
    limit, shuffled = float(request.options.get("messages", 0)), None
    if request.declaration is not None:
        shuffled = Shuffled(request=request, protocol=protocol, limit=limit, draws=not noiseless)
    constants = settle(request, lengths, shuffled)
    as_printed = constants._replace(printed=True, width=1.0, precision=bound_noise(request, lengths, shuffled))
    kind = request.readings.get("policies", "explicit")
    servers: dict[bytes, Analyser] = {}

    def serve_from(initial: Array) -> Analyser:
        """The server's side for a public law of the first state."""
        if initial.tobytes() not in servers:
            chosen = choose_set(kind, H=H, S=S, A=A, initial=initial, replicates=request.replicates)
            servers[initial.tobytes()] = Analyser(
                constants=constants, chosen=chosen, initial=initial.copy(), lengths=lengths
            )
        return servers[initial.tobytes()]

    first = serve_from(mdp.initial)
    w, points, ends = compress(mdp), grid(K), [one.last for one in segments]
    crude, fine = S * A * (1 + S), H * S * A * (2 + S)
    counters = {"crude": crude, "fine": fine, "auxiliary": fine}
    room = _find_room(segments, shuffled, counters)
    tables = 8.0 * len(lengths) * H * S * A * (3 + 2 * S)
    kept = sum((users + (H if part == "crude" else 1) * M) * counters[part] for part, (users, M) in room.items())
    refuse_bytes(
        request,
        (tables + kept) * request.replicates,
        what="tables and users' bits",
        remedy="fewer --replicates, or messages smaller",
    )
    truth = solve(mdp)  # not of sizes that are refused

    def start(number: int) -> Replicate:
        own = seeds(request.seed, number, "users", "noise", "ties", "deal")
        # what is public of first states travels with the replicate: one user may answer with others
        arrays = _blank(constants, len(lengths), room, first.chosen) | {"initial": first.initial.copy()} | blank(K)
        return Replicate(arrays=arrays, generators={name: np.random.default_rng(one) for name, one in own.items()})

    def block(one: Replicate, until: int) -> None:
        a, g = dict(one.arrays), one.generators
        server = serve_from(a["initial"])
        while (done := int(a["totals"][DONE])) < until:
            at = int(np.searchsorted(ends, done, side="right"))
            now = segments[at]
            sends = shuffled is not None and now.part != "rest" and shuffled.sends(now, counters[now.part])
            if done == now.first:
                if at and segments[at - 1].part == "auxiliary":
                    server.conclude(a, segments[at - 1].stage)
                _begin(a, server, now, g["ties"], w)
            record = Record(min(until, now.last), a["totals"], a["curves"], points, truth.value)
            serve(w, g["users"], g["deal"], _dealt(a), _counted(a, now, sends=sends), record)
            if a["totals"][DONE] == now.last and now.leaves:
                _leave(a, now, shuffled, g["noise"], sends=sends)

    label = request.setting.declared.name if request.declaration is not None else "policy-elimination"
    return Player(
        start=start,
        play=block,
        label=f"{label}, noiseless" if noiseless else label,
        told="actions",
        optimal=truth.value,
        face=None
        if shuffled is None
        else StageFace(
            segments=segments,
            stages=len(lengths),
            noise=shuffled.noise,
            sends=lambda half: shuffled.sends(half, counters[half.part]),
        ),
        noise="simulated: NumPy PCG64 bits, seeded; not for a public release",
        diagnostics={
            "stages": float(len(lengths)),
            "noise_std": constants.std,
            "last_width": compute_width(constants, lengths[-1]) if lengths else 0.0,
            "last_width_as_printed": compute_width(as_printed, lengths[-1]) if lengths else 0.0,
            "rare_below": constants.rare,
        },
    )


def _find_room(
    segments: tuple[Segment, ...], shuffled: Shuffled | None, counters: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """Largest number of users with stored bits, and of messages per counter, by part."""
    room = {"crude": (0, 0), "auxiliary": (0, 0)}
    for one in segments:
        if shuffled is not None and one.leaves and shuffled.sends(one, counters[one.part]):
            users, messages = room[one.part]
            due = count_messages(shuffled.noise(one.batch), one.batch)
            room[one.part] = max(users, one.batch), max(messages, due)
    return room


def _blank(c: Constants, stages: int, room: Mapping[str, tuple[int, int]], chosen: PolicySet) -> Arrays:
    """Arrays of a replicate before the first episode."""
    H, S, A = c.H, c.S, c.A
    pairs, triples = (H, S, A), (H, S, A, S)
    mixed = 2 * (H * S * A + 64)  # policies of a mixture at most
    shapes = {name: triples if "transitions" in name else pairs for name in (*CRUDE, *FINE)}
    return {
        **{name: np.zeros((stages, *shape)) for name, shape in shapes.items()},
        **{f"exact {name}": np.zeros(shape) for name, shape in shapes.items()},
        "counted": np.zeros(H * S * A * (2 + S)),
        "crude bits": np.zeros((room["crude"][0], S * A * (1 + S)), np.uint8),
        "fine bits": np.zeros((room["auxiliary"][0], H * S * A * (2 + S)), np.uint8),
        "left crude": np.full((H, S * A * (1 + S), room["crude"][1]), NOTHING, np.int8),
        "left fine": np.full((H * S * A * (2 + S), room["auxiliary"][1]), NOTHING, np.int8),
        "crude": np.zeros(triples),
        "model": np.zeros(triples),
        "rewarded": np.zeros(pairs),
        "dealt": np.zeros((mixed, H, S), np.int64),
        "until": np.zeros(mixed),
        "worth": np.zeros(mixed),
        "number": np.zeros(1, np.int64),
        "auxiliary": np.zeros((2 * H * S * A, H, S), np.int64),
        "auxiliary shares": np.zeros(2 * H * S * A),
        "auxiliaries": np.zeros(1),
        "coverage": np.zeros(1),
        "actions": np.zeros((H, S), np.int64),
        **chosen.blank(),
    }


def _begin(a: Arrays, server: Analyser, now: Segment, ties: np.random.Generator, w: SparseMDP) -> None:
    """Make and store the mixture for a segment's users, and clear their counters."""
    mixed = server.begin(a, now, ties)
    number = len(mixed.shares)
    before = a["dealt"][: int(a["number"][0])].copy()
    a["number"][0] = number
    a["dealt"][:number] = mixed.policies
    a["until"][:number] = np.cumsum(mixed.shares)
    a["totals"][SWITCHES] += bool(len(before)) and not np.array_equal(before, mixed.policies)
    for i in range(number):
        a["worth"][i] = value_anew(w, a["dealt"][i], np.zeros((w.H + 1, w.S)))
    if now.part in {"crude", "fine"}:
        a["counted"][...] = 0.0
        for kind in ("crude bits", "fine bits"):
            a[kind][...] = 0
        if now.part == "crude" and now.step == 0:
            for name in CRUDE:
                a[f"exact {name}"][...] = 0.0


def _dealt(a: Arrays) -> Dealt:
    number = int(a["number"][0])
    return Dealt(a["dealt"][:number], a["until"][:number], a["worth"][:number], a["actions"])


def _counted(a: Arrays, now: Segment, *, sends: bool) -> Counted:
    """Counters for the users of a segment."""
    S, A = a["visits"].shape[2:]
    if now.part == "rest":
        return Counted(-2, a["counted"][:0], a["fine bits"][:0], now.first)
    if now.part == "crude":
        bits = a["crude bits"][: now.batch if sends else 0]
        return Counted(now.step, a["counted"][: S * A * (1 + S)], bits, now.first)
    bits = a["fine bits"][: now.batch if sends else 0]
    return Counted(-1, a["counted"], bits, now.first if now.part == "fine" else now.last - now.batch)


def _leave(a: Arrays, now: Segment, shuffled: Shuffled | None, rng: np.random.Generator, *, sends: bool) -> None:
    """Release a batch's counters: the analyser's estimates from the messages go onto the billboard."""
    counted = _counted(a, now, sends=sends)
    noisy: Array = counted.sums
    if shuffled is not None:
        noisy, messages = shuffled.release(counted.sums, counted.bits, now.batch, rng)
        if messages is not None:
            room = a["left crude"][now.step] if now.part == "crude" else a["left fine"]
            room[...] = NOTHING
            room[:, : messages.shape[1]] = messages[:, : room.shape[1]]
    names, h = (CRUDE, now.step) if now.part == "crude" else (FINE, None)
    begun = 0
    for name in names:
        exact, left = a[f"exact {name}"], a[name][now.stage]
        where, out = (exact, left) if h is None else (exact[h], left[h])
        where[...] = counted.sums[begun : begun + where.size].reshape(where.shape)
        out[...] = noisy[begun : begun + out.size].reshape(out.shape)
        begun += where.size
