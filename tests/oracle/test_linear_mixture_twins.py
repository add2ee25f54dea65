"""The agents of linear mixtures are Zhou's (2022), episode by episode: naive NumPy beside the compiled kernel."""

import math
from itertools import pairwise

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import FiniteMDP
from privcheck.errors import ParameterError
from privcheck.runtime import registry
from privcheck.runtime.replicates import ready, run, seeds
from privcheck.runtime.results import OnlineRequest, World

VI, PO = "private-linopt-vi", "private-linopt-po"
TWIN = {VI: "ucrl-vtr", PO: "linear-oppo"}
OPTIONS = {"bonus_p": "0.3", "bonus_r": "0.2", "failure": "0.05", "ridge": "0.7"}
ETA = 3
RAISED = []  # dimensions of matrices whose eigenvalues were raised


def draw_world(seed):
    """Random sizes, signed kernels, features and model; the model changes with the step, and is no mixture."""
    rng = np.random.default_rng(seed)
    H, S, A, d1, d2 = (int(rng.integers(low, high)) for low, high in ((1, 5), (1, 5), (1, 4), (1, 5), (1, 5)))
    phi = rng.normal(size=(S, A, d2))
    phi /= np.linalg.norm(phi, axis=-1, keepdims=True) * rng.uniform(1, 2, (S, A, 1))
    kernels = rng.dirichlet(np.ones(S), size=(d1, S, A)) * rng.choice((-1.0, 1.0), size=(d1, S, A, 1))
    return World(
        name="drawn",
        description="",
        mdp=FiniteMDP(
            horizon=H,
            transition=rng.dirichlet(np.ones(S), size=(H, S, A)),
            reward=rng.random((H, S, A, S)),
            initial=rng.dirichlet(np.ones(S)),
        ),
        features=FeatureMap(phi=phi, kernels=kernels),
    )


def asked(name, world, *, K, seed=3, **given):
    more = {**OPTIONS, "K": str(K), "eta_scale": str(ETA), **{k: str(v) for k, v in given.items()}}
    allowed = {"ucrl-vtr": {"K", *OPTIONS, "known_rewards"}}
    allowed["linear-oppo"] = allowed["ucrl-vtr"] | {"eta_scale"}
    allowed[VI] = allowed["ucrl-vtr"] | {"noise_scale", "epsilon", "dimensions"}
    allowed[PO] = allowed[VI] | {"eta_scale"}
    setting = online_settings([name], {k: v for k, v in more.items() if k in allowed[name]}, world)[0]
    return OnlineRequest(setting=setting.setting, world=world, episodes=K, replicates=2, seed=seed)


def expected_numbers(request, d, H, K, noises, *, transition):
    """γ and β from Lemma 3.1 and the proof of Theorem 6.5."""
    options = {name: float(value) for name, value in request.options.items()}
    alpha, follow = options["failure"] / 4, options.get("noise_scale", 0.0)
    m = max(1, math.ceil(math.log2(K)))
    gram, sums = noises
    sigma = follow * gram * m**0.5 * (4 * d**0.5 + (8 * math.log(8 * K * H / alpha)) ** 0.5)
    least, most = options["ridge"] + sigma, options["ridge"] + 3 * sigma
    nu = follow * sums * m**0.5 * (d**0.5 + (2 * math.log(4 * K * H / alpha)) ** 0.5) / least**0.5
    inside = 2 * math.log(H / alpha)
    inside += d * math.log(1 + K * H**2 / least) if transition else d * math.log(1 + K / (d * least))
    reach, factor = (H, options["bonus_p"]) if transition else (1, options["bonus_r"])
    return options["ridge"] + 2 * sigma, factor * (reach / 2 * inside**0.5 + (d * most) ** 0.5 + nu)


def confident(gram, ridge):
    """Λ + γI, its eigenvalues raised to γ/2 where a pivot of elimination is below that."""
    matrix = gram + ridge * np.eye(len(gram))
    minors = [1.0, *(np.linalg.det(matrix[:i, :i]) for i in range(1, len(gram) + 1))]
    pivots = [one / before if before > 0 else -1 for before, one in pairwise(minors)]
    if min(pivots) >= ridge / 2:
        return matrix
    RAISED.append(len(gram))
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, ridge / 2)) @ vectors.T


def naive_plan(request, board, weights):
    """Lines 3 to 12 of Algorithm 1, or of Algorithm 2 where there is a policy (H, S, A); Q, V and φ of each step."""
    world = request.world
    H, S, A = world.mdp.horizon, world.mdp.states, world.mdp.actions
    d1, d2 = board["transition values"].shape[1], board["reward sums"].shape[1]
    kernels, features = np.zeros((d1, S, A, S)), np.zeros((S, A, d2))
    kernels[: len(world.features.kernels)] = world.features.kernels
    features[..., : world.features.dimension] = world.features.phi
    std = (
        {r.name: r.mechanism.at(request.values).scale for r in request.declaration.releases}
        if request.declaration
        else {}
    )
    pairs = (("transition gram", "transition values", d1), ("reward gram", "reward sums", d2))
    numbers = [
        expected_numbers(request, d, H, request.episodes, (std.get(g, 0), std.get(u, 0)), transition=g[0] == "t")
        for g, u, d in pairs
    ]
    Q, V, phis = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.zeros((H, S, A, d1))
    for h in range(H, 0, -1):
        phis[h - 1] = np.einsum("isat,t->sai", kernels, V[h])
        for (gram, sums, _), (ridge, beta), x in zip(pairs, numbers, (phis[h - 1], features), strict=True):
            if gram[0] == "r" and request.options["known_rewards"]:
                Q[h - 1] += world.mdp.mean_reward[h - 1]
                continue
            inverse = np.linalg.inv(confident(board[gram][h - 1], ridge))
            length = np.sqrt(np.einsum("sai,ij,saj->sa", x, inverse, x))
            Q[h - 1] += x @ inverse @ board[sums][h - 1] + beta * length
        Q[h - 1] = np.maximum(0, np.minimum(H - h + 1, Q[h - 1]))
        V[h - 1] = Q[h - 1].max(axis=1) if weights is None else (Q[h - 1] * weights[h - 1]).sum(axis=1)
    return Q, V, phis, features


def tables(request, flat):
    """The four counters out of the agent's vector."""
    H, at, found = request.world.mdp.horizon, 0, {}
    sizes = request.world.features.sizes
    d1, d2 = (int(request.values.get(n, request.values.get("d", sizes[n]))) for n in ("d1", "d2"))
    for name, d in (("transition gram", d1), ("transition values", d1), ("reward gram", d2), ("reward sums", d2)):
        if name.endswith("gram"):
            found[name] = np.zeros((H, d, d))
            for h in range(H):
                for i in range(d):
                    for j in range(i, d):
                        found[name][h, i, j] = found[name][h, j, i] = flat[at]
                        at += 1
        else:
            found[name] = flat[at : at + H * d].reshape(H, d)
            at += H * d
    assert at == flat.size
    return found


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * (1 + np.abs(other).max(initial=0.0)))


CASES = [(name, seed) for name in (VI, PO, *TWIN.values()) for seed in range(6)]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_every_episode_is_the_papers(name, seed):
    K = 11
    small = {"epsilon": 3000, "noise_scale": "0.01"}  # noise that the sums are seen through, and eigenvalues below γ/2
    follow(name, asked(name, draw_world(seed), K=K, known_rewards=seed % 2, dimensions="own", **small))


def follow(name, request):
    """Plays an agent beside the naive one, from its own board, and compares them after every episode."""
    world, K = request.world, request.episodes
    mixed, private = name in {PO, "linear-oppo"}, name in TWIN
    player = ready(request_maker(name), request)
    one, (H, S, A) = player.start(0), (world.mdp.horizon, world.mdp.states, world.mdp.actions)
    weights = np.full((H, S, A), 1 / A) if mixed else None
    eta = ETA * math.sqrt(2 * math.log(A) / (H**2 * K))
    moved = 0
    for k in range(1, K + 1):
        before = {kind: one.arrays[kind].copy() for kind in ("exact", "noisy")}
        Q, V, phis, features = naive_plan(request, tables(request, before["noisy"]), weights)
        player.play(one, k)
        close(one.arrays["values"], V)
        close(one.arrays["quality"].reshape(H, S, A), Q)
        told = one.arrays[player.told]
        if mixed:
            close(told, weights)
            weights = weights * np.exp(eta * (Q - Q.max(axis=2, keepdims=True)))
            weights /= weights.sum(axis=2, keepdims=True)
        else:
            close(np.take_along_axis(Q, told[..., None], axis=2)[..., 0], Q.max(axis=2))
        kind = "exact" if private else "noisy"
        added = tables(request, one.arrays[kind] - before[kind])
        moved += np.abs(one.arrays["noisy"] - before["noisy"]).max() > 0
        for h in range(H):
            s, a, r = one.arrays["path"][h], one.arrays["taken"][h], 1 - one.arrays["costs"][h]
            x, y, v = phis[h, s, a], features[s, a], V[h + 1, one.arrays["path"][h + 1]]
            wanted = (np.outer(x, x), x * v, np.outer(y, y), y * r) if k < K else (0, 0, 0, 0)
            for (_, table), want in zip(added.items(), wanted, strict=True):
                np.testing.assert_allclose(table[h], want, atol=1e-9 * (1 + H**2))
    assert moved == K - 1  # nothing leaves after the last episode


def request_maker(name):
    return registry.algorithm(name).online


def pieces(size):
    """The agent draws for whole pieces of a multiple of sixteen numbers, at most 1024 or so."""
    count = -(-size // 1024)
    return -(-size // (count * 16)) * 16


@pytest.mark.parametrize("name", [VI, PO])
def test_the_noise_is_a_trees(name):
    """Every node has one draw, of its counter's scale; an output has the nodes of its bits."""
    world, K = draw_world(2), 23
    request = asked(name, world, K=K, epsilon=1, dimensions="own")
    std = {r.name: r.mechanism.at(request.values).scale for r in request.declaration.releases}
    player = ready(request_maker(name), request)
    one, rng, nodes = player.start(1), np.random.default_rng(seeds(3, 1, "noise")["noise"]), {}
    H, own = world.mdp.horizon, world.features.sizes
    sizes = [H * own[d] * (own[d] + 1) // 2 if gram else H * own[d] for d in ("d1", "d2") for gram in (True, False)]
    names = ("transition gram", "transition values", "reward gram", "reward sums")
    for t in range(1, K):
        player.play(one, t)
        level = (t & -t).bit_length() - 1
        drawn = [
            std[name] * rng.standard_normal(-(-size // pieces(size)) * pieces(size))[:size]
            for name, size in zip(names, sizes, strict=True)
        ]
        nodes = {at: noise for at, noise in nodes.items() if at > level} | {level: np.concatenate(drawn)}
        assert sorted(nodes) == [at for at in range(10) if t >> at & 1]
        close(one.arrays["noisy"], one.arrays["exact"] + sum(nodes.values()))


@pytest.mark.parametrize("name", [VI, PO])
@pytest.mark.parametrize("seed", range(3))
def test_without_noise_it_is_the_baseline_bit_by_bit(name, seed):
    world = draw_world(100 + seed)
    private = run(request_maker(name), asked(name, world, K=80, noise_scale=0, dimensions="own"), noiseless=True)
    plain = run(request_maker(TWIN[name]), asked(TWIN[name], world, K=80))
    for field in ("regret", "value", "switches", "policy"):
        assert np.array_equal(getattr(private, field), getattr(plain, field)), field


@pytest.mark.parametrize("name", [VI, PO])
def test_one_dimension_for_both_pads_the_kernels_with_zeros(name):
    worlds = [draw_world(seed) for seed in range(40)]
    fitting = [world for world in worlds if world.features.sizes["d1"] < world.features.sizes["d2"]]
    for world in fitting[:3]:
        follow(name, asked(name, world, K=9, epsilon=3000, noise_scale="0.01", dimensions="common"))
    wide = next(world for world in worlds if world.features.sizes["d1"] > world.features.sizes["d2"])
    with pytest.raises(ParameterError, match="dimensions=own"):
        request_maker(name)(asked(name, wide, K=9, dimensions="common"))


def test_eigenvalues_were_raised_in_some_of_these():
    RAISED.clear()
    for seed in range(4, 8):
        follow(VI, asked(VI, draw_world(seed), K=11, epsilon=3000, noise_scale="0.001", dimensions="own"))
    assert max(RAISED, default=0) > 1
