"""SDP-PE as Bai et al. 2024 print it, line by line, beside the agent with `constants=printed`.

The printed E is so large at small sizes that every tuple is infrequent; here it is a few counts, so that some are.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.declare.mechanisms.shuffled_bits import ShuffledIntegersNoise
from privcheck.runtime import registry
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.environments.finite import random_mdp, riverswim
from privcheck_algorithms.sdp_pe.agent import Analyser, _blank
from privcheck_algorithms.sdp_pe.batches import HONEST, Segment, Shuffled, analyse, list_segments, settle
from privcheck_algorithms.sdp_pe.kernels import Constants, compute_width
from privcheck_algorithms.sdp_pe.policy_sets import Explicit, choose_set, count_visits
from transcribed import transcribes

H, S, A, E, RARE = 3, 2, 2, 8.0, 6.0
C = Constants(
    H=H, S=S, A=A, iota=9.0, precision=E, rare=RARE, width=1.0, noise_width=0.2, std=3.0, printed=True
)  # fmt: skip
SEEDS = range(12)
STEPS, PAIRS = range(H), list(itertools.product(range(S), range(A)))


def equation_7(pair, following):
    """N̈ to N̄, by bisection for the common shift; counts clipped at 0 first, which the table says."""
    y, m = np.maximum(following, 0), max(pair, 0.0)
    whole = min(max(y.sum(), m - E / 4), m + E / 4)
    if whole >= y.sum():
        return y + (whole - y.sum()) / S
    low, high = 0.0, y.max()
    for _ in range(100):
        t = (low + high) / 2
        low, high = (t, high) if np.maximum(y - t, 0).sum() > whole else (low, t)
    return np.maximum(y - low, 0)


def private_counts(visits, following):
    """Section V, below (7): Ñ(x, a) = N̄(x, a) + E/2 and Ñ(x, a, x′) = N̄(x, a, x′) + E/2X, (S, A) and (S, A, S)."""
    bar = np.array([[equation_7(visits[x, a], following[x, a]) for a in range(A)] for x in range(S)])
    return bar.sum(axis=2) + E / 2, bar + E / (2 * S)


def infrequent(following):
    """Algorithm 2, line 9: 𝒲 at one step."""
    return {(x, a, after) for (x, a) in PAIRS for after in range(S) if following[x, a, after] <= RARE}


def estimate_transition(visits, following, rare):
    """Definition 5 and equation (3): P̃ of the states; the rest of a row's mass goes to x†."""
    P = np.zeros((S, A, S))
    for (x, a), after in itertools.product(PAIRS, range(S)):
        if (x, a, after) not in rare:
            P[x, a, after] = following[x, a, after] / visits[x, a]
    return P


def every_policy():
    """All deterministic policies, (H, S) each."""
    for actions in itertools.product(range(A), repeat=H * S):
        yield np.array(actions).reshape(H, S)


def value(actions, reward, P, initial):
    """V^π of a reward (H, S, A) in a model whose rows may sum to less than 1: x† is worth 0."""
    law, total = initial.copy(), 0.0
    for h in range(len(reward)):
        following = np.zeros(S)
        for x in range(S):
            total += law[x] * reward[h, x, actions[h, x]]
            following += law[x] * P[h, x, actions[h, x]]
        law = following
    return total


def indicator(h, x, a):
    """1_{h,x,a}."""
    reward = np.zeros((H, S, A))
    reward[h, x, a] = 1.0
    return reward


class Server:
    """The server's side with random noisy counts of one stage."""

    def __init__(self, seed, *, lengths=(40,)):
        rng = np.random.default_rng(seed)
        self.initial = np.array([0.7, 0.3])
        chosen = choose_set("explicit", H=H, S=S, A=A, initial=self.initial, replicates=1)
        self.server = Analyser(constants=C, chosen=chosen, initial=self.initial, lengths=lengths)
        self.arrays = _blank(C, len(lengths), {"crude": (0, 0), "auxiliary": (0, 0)}, chosen)
        self.ties = np.random.default_rng(seed + 1)
        for name, table in self.arrays.items():
            if name in {"crude transitions", "transitions"}:
                table[0] = rng.normal(9, 7, (H, S, A, S))
        for one in ("crude ", ""):
            self.arrays[f"{one}visits"][0] = self.arrays[f"{one}transitions"][0].sum(axis=-1) + rng.normal(
                0, 3, (H, S, A)
            )
        self.arrays["rewards"][0] = rng.uniform(-2, 25, (H, S, A))

    def counts(self, one, h):
        return private_counts(self.arrays[f"{one}visits"][0, h], self.arrays[f"{one}transitions"][0, h])

    def rare(self, h):
        return infrequent(self.counts("crude ", h)[1])

    def crude_model(self):
        return np.array([estimate_transition(*self.counts("crude ", h), self.rare(h)) for h in STEPS])

    def explore(self):
        """Runs crude exploration of the stage; returns its mixtures, step by step."""
        parts = [Segment(part="crude", stage=0, step=h, first=0, last=1, batch=1) for h in STEPS]
        return [self.server.begin(self.arrays, part, self.ties) for part in parts]

    def conclude(self):
        self.explore()
        self.server._take_crude(self.arrays, 0, H)
        self.server.conclude(self.arrays, 0)


@transcribes("sdp_pe", "Algorithm 2, 1–2, 11", "Algorithm 2, 9", "Algorithm 2, 10", "Definition 5", "section V, Ñ")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_crude_model_leaves_out_infrequent_tuples(seed):
    one = Server(seed)
    one.server._take_crude(one.arrays, 0, H)
    assert 0 < sum(len(one.rare(h)) for h in STEPS) < H * S * A * S
    np.testing.assert_allclose(one.arrays["crude"], one.crude_model(), atol=1e-9)


@transcribes("sdp_pe", "Algorithm 3, 5, 8", "Algorithm 3, 6", "Algorithm 3, 9", "equation (3)")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_refined_model_leaves_out_the_tuples_of_crude_exploration(seed):
    """Line 6 hands over the 𝒲 of Algorithm 2: fine counts decide nothing."""
    one = Server(seed)
    one.conclude()
    refined = np.array([estimate_transition(*one.counts("", h), one.rare(h)) for h in STEPS])
    np.testing.assert_allclose(one.arrays["model"], refined, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_rewards_are_quotients_clipped_to_the_unit_interval(seed):
    one = Server(seed)
    one.conclude()
    quotients = np.array([one.arrays["rewards"][0, h] / one.counts("", h)[0] for h in STEPS])
    assert (quotients < 0).any() or (quotients > 1).any()
    np.testing.assert_allclose(one.arrays["rewarded"], np.clip(quotients, 0, 1), atol=1e-9)


@transcribes("sdp_pe", "Algorithm 2, initialisation", "Algorithm 2, 3–5", "Algorithm 2, 12", "Algorithm 2, 13")
@pytest.mark.parametrize("seed", SEEDS)
def test_crude_policies_visit_each_pair_as_often_as_any_and_are_mixed_uniformly(seed):
    one = Server(seed)
    P = one.crude_model()
    shares = []
    for h, mixed in enumerate(one.explore()):
        np.testing.assert_allclose(mixed.shares, 1 / (S * A))
        for policy, (x, a) in zip(mixed.policies, PAIRS, strict=True):
            best = max(value(other, indicator(h, x, a), P, one.initial) for other in every_policy())
            assert value(policy, indicator(h, x, a), P, one.initial) == pytest.approx(best, abs=1e-7)  # ties: 10⁻⁹
        shares += [mixed.policies]
    one.server._explore_finely(one.arrays, 0, one.ties)
    kept = int(one.arrays["auxiliaries"][0])
    assert np.array_equal(one.arrays["auxiliary"][:kept], np.concatenate(shares))
    np.testing.assert_allclose(one.arrays["auxiliary shares"][:kept], 1 / (H * S * A))


@transcribes("sdp_pe", "Algorithm 1, 7–13", "Algorithm 1, initialisation")
@pytest.mark.parametrize("seed", SEEDS)
def test_policies_go_whose_value_is_at_least_the_width_below_the_best(seed):
    one = Server(seed)
    one.conclude()
    chosen, kept = one.server.chosen, one.server.chosen.blank()
    assert isinstance(chosen, Explicit)
    assert int(np.unpackbits(kept["alive"].view(np.uint8)).sum()) == A ** (H * S)
    P, reward = one.arrays["model"], one.arrays["rewarded"]
    values = np.array([value(policy, reward, P, one.initial) for policy in every_policy()])
    width = float(np.quantile(values.max() - values, 0.4))
    chosen.eliminate(kept, P, reward, width)
    left = int(np.unpackbits(kept["alive"].view(np.uint8)).sum())
    assert 0 < left < len(values)
    off = np.abs(values.max() - values - width) < 1e-9  # rounding decides these
    assert 0 <= left - int(((values.max() - values < width) & ~off).sum()) <= int(off.sum())
    L, X = 40, S
    printed = 2 * (math.sqrt(X * A * H**3 * C.iota / L) + X**3 * A * H**5 * E * C.iota / L)
    assert compute_width(C, L) == pytest.approx(printed)


def asked(name, world, K, **given):
    sets = {"K": str(K), **{key: str(one) for key, one in given.items()}}
    chosen = online_settings([name], sets, world)[0]
    return chosen, OnlineRequest(setting=chosen.setting, world=world, episodes=K, seed=4)


@transcribes("sdp_pe", "Algorithm 1, initialisation", "Algorithm 2, initialisation")
@pytest.mark.parametrize("name", ["sdp-pe", "sdp-pe-as-printed"])
def test_the_preset_paper_has_the_printed_constants(name):
    world = World(name="river", description="", mdp=riverswim(3, H=4))
    _, request = asked(name, world, 500, preset="paper")
    constants = settle(request, (2, 4, 8), Shuffled(request=request, protocol=HONEST, limit=0.0, draws=True))
    iota = math.log(2 * 4 * 2 * 500 / 0.1)
    assert constants.printed
    assert constants.width == 1.0
    assert constants.iota == pytest.approx(iota)
    assert constants.rare == pytest.approx(6 * constants.precision * 4**2 * iota)  # C₁·E·H²ι
    # E/4 bounds all errors: √(3·E[Q]·ln(2/β)) of Lemma 10's proof, over every counter and stage
    n = 2 * 8
    tau = 96 * math.log(2 * 4 * 3 * 2 / 1e-5) / (1 / 12) ** 2
    mean = math.ceil(tau / n) * n / 2
    logs = math.log(2 * 4 * 3 * 2 * 5 * 3 / 0.1)
    assert constants.precision == pytest.approx(4 * max(math.sqrt(3 * mean * logs), 3 * logs))


def draw(seed, n, counters):
    return np.random.default_rng(seed).integers(0, 2, (n, counters)).astype(np.uint8)


@transcribes("sdp_pe", "section V, randomizer", "section V, analyser")
@pytest.mark.parametrize(("n", "tau"), [(7, 20.0), (20, 20.0), (21, 20.0), (30, 8.0)])
def test_a_message_is_the_bit_and_all_noise_bits(n, tau):
    bits, counters = draw(1, n, 5), 5
    noise = ShuffledIntegersNoise(scale=1.0, senders=n, threshold=tau)
    sent = HONEST.encode(bits, noise, np.random.default_rng(2))
    m, p = (math.ceil(tau / n), 0.5) if n <= tau else (1, tau / (2 * n))
    y = np.random.default_rng(2).random((counters, n * m)).reshape(counters, n, m) < p
    z = np.array([[bits[i, c] + y[c, i].sum() for i in range(n)] for c in range(counters)])
    assert np.array_equal(sent, z)
    less = math.ceil(tau / n) * n / 2 if n <= tau else tau / 2
    np.testing.assert_allclose(analyse(HONEST.shuffle(sent, np.random.default_rng(3)), noise), z.sum(axis=1) - less)


def test_twelve_in_the_place_of_96_would_turn_the_verdict():
    """Section V prints O(·): the event that an integer shows its bit is rarer than β with 96 and not with 12."""
    small, rare, n = Fraction(1, 18), 1e-5 / (6 * 4 * 2), 2 * 2572
    chance = {}
    for factor in (96, 12):
        m = math.ceil(factor * math.log(2 / rare) / small**2 / n)
        chance[factor] = m, 1 - (1 - 2.0**-m) ** 36
    assert chance[96][0] == 98
    assert chance[96][1] < 1e-5
    assert chance[12][0] == 13
    assert chance[12][1] == pytest.approx(4.4e-3, rel=0.01)
    said = next(line for line in registry.algorithm("sdp-pe-as-printed").conformance if line.number == "section V, τ")
    assert "with 12, m = 13, and some integer message shows its sender's bit with probability 4·10⁻³" in said.deviates


def deterministic(seed):
    """A world without chance, whose users' trajectories follow from their policies."""
    rng = np.random.default_rng(seed)
    base = random_mdp(S=S, A=A, H=H, seed=seed)
    following = rng.integers(0, S, (H, S, A))
    mdp = type(base)(
        horizon=H,
        transition=np.eye(S)[following],
        reward=rng.integers(0, 2, (H, S, A, 1)).astype(float),
        initial=np.eye(S)[0],
    )
    return World(name="certain", description="", mdp=mdp), following


@transcribes(
    "sdp_pe", "Algorithm 1, 5–6", "Algorithm 2, 7–8", "Algorithm 3, initialisation", "Algorithm 3, 2", "Algorithm 3, 3"
)
@pytest.mark.parametrize("seed", range(3))
def test_crude_batches_count_their_step_and_fine_ones_all_steps(seed):
    world, following = deterministic(seed)
    reward, K = world.mdp.reward[..., 0], 42
    chosen, request = asked("policy-elimination", world, K, preset="paper")
    player = ready(chosen.algorithm.online, request)
    one, stage, users = player.start(0), -1, []
    for part in list_segments(K, H, remainder="last"):
        if part.stage > stage:
            stage, fine = part.stage, []
        users = []
        for k in range(part.first + 1, part.last + 1):
            player.play(one, k)
            x, path = 0, []
            for h in STEPS:
                a = one.arrays["actions"][h, x]
                path.append((h, x, a, following[h, x, a]))
                x = following[h, x, a]
            users.append(path)
        if part.part == "crude":  # Algorithm 2: D^h is its own batch, and N of the h-th horizon is received
            visits, after = np.zeros((S, A)), np.zeros((S, A, S))
            for path in users:
                _, x, a, then = path[part.step]
                visits[x, a] += 1
                after[x, a, then] += 1
            assert np.array_equal(one.arrays["crude visits"][stage, part.step], visits)
            assert np.array_equal(one.arrays["crude transitions"][stage, part.step], after)
        elif part.part != "rest":  # Algorithm 3: π^ref and π₀ for L users each, one batch
            fine += users
            L = len(users)
        if part.part == "auxiliary":
            visits, after, rewards = np.zeros((H, S, A)), np.zeros((H, S, A, S)), np.zeros((H, S, A))
            for h, x, a, then in itertools.chain(*fine):
                visits[h, x, a] += 1
                after[h, x, a, then] += 1
                rewards[h, x, a] += reward[h, x, a]
            assert len(fine) == 2 * L
            for name, table in (("visits", visits), ("transitions", after), ("rewards", rewards)):
                assert np.array_equal(one.arrays[name][stage], table)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_explorative_mixture_covers_as_well_as_ten_per_cent_off_the_best(seed):
    """Lemma 13: the least worst ratio Σ V^μ/V^π of a mixture is the number of pairs that are visited at all."""
    one = Server(seed)
    one.explore()
    found = one.server._explore_finely(one.arrays, 0, one.ties)
    P = one.crude_model()
    visits = count_visits(found, P, one.initial)
    seen = visits > 1e-6
    worst = max(
        sum(
            value(mu, indicator(h, x, a), P, one.initial) / visits[h, x, a]
            for h, x, a in zip(*np.nonzero(seen), strict=True)
        )
        for mu in every_policy()
    )
    assert worst <= 1.1 * seen.sum() + 1e-6
