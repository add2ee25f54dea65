"""Linear worlds with a known truth: signs, hypercube, mixture, and Qiao & Wang's synthetic model.

* `linear-hypercube`: a linear mixture with unknown signs, solved neither by its structure nor by its prior.
* `linear-signs`: a linear MDP with unknown signs that only learning solves.
* `linear-mixture`: RiverSwim as a linear mixture, which its structure alone solves at the usual sizes.
* `linear-synthetic`: the papers' benchmark (Qiao & Wang 2022, Appendix G), nearly solved by myopic play.

The first two have two states, actions as bits and unknown signs (`make_model`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import FiniteMDP
from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Environment
from privcheck.runtime.results import Dataset, World
from privcheck_algorithms.dp_vapvi.declaration import ACTIONS, DIMENSION, STATES, make_printed_features
from privcheck_algorithms.environments.finite import LEFT, RIGHT, make_world, riverswim, sample_dataset

Array = NDArray[np.float64]

BASE = (0.35, 0.65)  # P(1 | s) of an action with as many wrong signs as right ones
REACH = 0.3  # how far all signs together move it: probabilities lie in [.05, .95]


def make_signs(bits: int) -> Array:
    """Matrix signs(a) of all actions, shape (2^bits, bits), the highest bit first; a bit 0 is −1.

    >>> make_signs(2).astype(int).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    actions = np.arange(2**bits)[:, np.newaxis]
    ones: NDArray[np.int64] = (actions >> np.arange(bits - 1, -1, -1)) & 1
    return np.where(ones == 1, 1.0, -1.0)


def draw_signs(*, H: int, bits: int, seed: int, stream: int) -> Array:
    """Unknown signs μ of shape (H, bits), fair and independent.

    Args:
        H: Number of steps.
        bits: Number of bits of an action.
        seed: Seed of the draw.
        stream: Stream of the environment, so that two environments with one seed have different signs.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))
    return np.where(rng.integers(0, 2, size=(H, bits)) == 1, 1.0, -1.0)


def make_model(signs: Array) -> FiniteMDP:
    """Model with the unknown signs μ, (H, bits); users start in state 0.

    At step h, P_h(1 | s, a) = (.35, .65)_s + .3·⟨signs(a), μ_h⟩/b for s ∈ {0, 1}; signs(a) ∈ {−1, 1}^b are the bits of
    a, μ_h ∈ {−1, 1}^b is unknown, and r = 1{s = 1}. The reward is not informative about the action, so that myopic play
    and planning without data are uniform play, and all b signs of a step have to be learned.
    """
    H, bits = signs.shape
    moved = REACH * (signs @ make_signs(bits).T) / bits  # (H, A)
    to_one = np.array(BASE)[np.newaxis, :, np.newaxis] + moved[:, np.newaxis, :]  # (H, S, A)
    reward = np.zeros((1, 2, 1, 1))
    reward[0, 1] = 1.0
    return FiniteMDP(
        horizon=H,
        transition=np.stack([1.0 - to_one, to_one], axis=-1),
        reward=reward,
        initial=np.array([1.0, 0.0]),
    )


BITS = 4
_HYPERCUBE_STREAM = 0xC0BE  # of the draw of the signs


def make_hypercube_kernels() -> NDArray[np.float64]:
    """Kernels ψ_i(s′ | s, a), shape (5, 2, 16, 2): the base kernel, then one perturbation a bit.

    P_h(· | s, a) = ψ_0(· | s, a) + Σ_i μ_{h,i}·ψ_i(· | s, a): a base kernel of probabilities, ψ_0(1 | s, a) =
    (.35, .65)_s, and four perturbations, ψ_i(1 | s, a) = −ψ_i(0 | s, a) = .3·signs(a)_i/4, with 16 actions of 4 bits.
    So d₁ = 5 and θ_h = (1, μ_h), μ_h ∈ {−1, 1}⁴. Assumption 1 of Zhou 2022: ‖θ_h‖ = √5 = √d₁, and for V in [0, H] ‖Σ_s′
    ψ(s′ | s, a)·V(s′)‖ is at most H·√(1 + 4·.075²), which is less than √d₁·H. The prior without signs has θ = (1, 0, 0,
    0, 0).
    """
    signs = make_signs(BITS)
    kernels = np.empty((1 + BITS, 2, len(signs), 2))
    kernels[0, ..., 1] = np.array(BASE)[:, np.newaxis]
    kernels[0, ..., 0] = 1.0 - kernels[0, ..., 1]
    kernels[1:, ..., 1] = REACH * signs.T[:, np.newaxis] / BITS
    kernels[1:, ..., 0] = -kernels[1:, ..., 1]
    return kernels


def make_hypercube_rewards() -> NDArray[np.float64]:
    """Features φ(s, a) = (1{s = 1}, signs(a)/2)/√2, shape (2, 16, 5), of norm at most 1: r = √2·φ_0 is linear in it."""
    signs = make_signs(BITS)
    phi = np.empty((2, len(signs), 1 + BITS))
    phi[..., 0] = np.arange(2.0)[:, np.newaxis]
    phi[..., 1:] = signs / np.sqrt(BITS)
    phi /= np.sqrt(2.0)
    return phi


def _make_hypercube(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the parameter `model` is the seed
    H, number = values["H"], values["model"]
    return make_world(
        name="linear-hypercube",
        description=f"a linear mixture of 2 states, 16 actions and {H} steps with unknown signs, number {number}",
        mdp=make_model(draw_signs(H=H, bits=BITS, seed=number, stream=_HYPERCUBE_STREAM)),
        features=FeatureMap(phi=make_hypercube_rewards(), kernels=make_hypercube_kernels()),
        facts={"model seed": number},
    )


def _sample_hypercube(values: Mapping[str, int], seed: int) -> Dataset:
    return sample_dataset(_make_hypercube, values, seed=seed, public_reward=True)


LINEAR_HYPERCUBE = Environment(
    name="linear-hypercube",
    title="A linear mixture with unknown signs, which its prior does not solve",
    source="ours, for the agents of Zhou 2022",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=6, kind="count", meaning="steps of an episode"),
        Parameter(name="model", default=1, kind="count", meaning="number of the model: the seed of its signs"),
    ),
    sample=_sample_hypercube,
    model=_make_hypercube,
)


SIGN_BITS = 8
_SIGN_STREAM = 0x51  # of the draw of the signs


def make_sign_features() -> NDArray[np.float64]:
    """Features φ(s, a) = (e_s, signs(a)/√8)/√2, shape (2, 256, 10), of norm 1.

    256 actions of 8 bits, with unknown signs at every step: P_h(1 | s, a) = (.35, .65)_s + .3·⟨signs(a), μ_h⟩/8 and r =
    1{s = 1} are linear in φ, of dimension 10.
    """
    signs = make_signs(SIGN_BITS)
    phi = np.empty((2, len(signs), 2 + SIGN_BITS))
    phi[..., :2] = np.eye(2)[:, np.newaxis]
    phi[..., 2:] = signs / np.sqrt(SIGN_BITS)
    phi /= np.sqrt(2.0)
    return phi


def _make_signs_world(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the parameter `model` is the seed
    H, number = values["H"], values["model"]
    return make_world(
        name="linear-signs",
        description=f"a linear MDP of 2 states, 256 actions and {H} steps with unknown signs, number {number}",
        mdp=make_model(draw_signs(H=H, bits=SIGN_BITS, seed=number, stream=_SIGN_STREAM)),
        features=FeatureMap(phi=make_sign_features()),
        facts={"model seed": number},
    )


def _sample_signs(values: Mapping[str, int], seed: int) -> Dataset:
    return sample_dataset(_make_signs_world, values, seed=seed, public_reward=True)


LINEAR_SIGNS = Environment(
    name="linear-signs",
    title="A linear MDP with unknown signs, which myopic play does not solve",
    source="ours, for the linear agents of Qiao & Wang 2022 and Sahu 2025",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        Parameter(name="model", default=1, kind="count", meaning="number of the model: the seed of its signs"),
    ),
    sample=_sample_signs,
    model=_make_signs_world,
)


def make_river_kernels(states: int) -> NDArray[np.float64]:
    """Kernels ψ_i(s′ | s, a), shape (3, S, 2, S), all of them probabilities.

    Three known kernels, with θ = (.35, .6, .05) at every step, unknown to all agents. Right at an inner state: up,
    stay, down. At the bank the first and the third stay and the second goes up, .4 and .6; at the far end the second
    stays and the others go down. Left is deterministic in all three. The prior θ = ⅓ and the true rewards plan
    optimally at the usual sizes.
    """
    last = states - 1
    kernels = np.zeros((3, states, 2, states))
    for s in range(states):
        kernels[:, s, LEFT, max(0, s - 1)] = 1.0
        targets = (s + 1, s, s - 1)
        if s == 0:
            targets = (0, 1, 0)
        elif s == last:
            targets = (last - 1, last, last - 1)
        kernels[np.arange(3), s, RIGHT, targets] = 1.0
    return kernels


def make_river_rewards(states: int) -> NDArray[np.float64]:
    """Features φ(s, a), shape (S, 2, 3): one-hot in (0, left), (S − 1, right) and all other pairs, where r = 0."""
    phi = np.zeros((states, 2, 3))
    phi[..., 2] = 1.0
    phi[0, LEFT], phi[states - 1, RIGHT] = np.eye(3)[0], np.eye(3)[1]
    return phi


def _make_mixture(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
    H, states = values["H"], values["S"]
    mdp = riverswim(states, H=H)
    return make_world(
        name="linear-mixture",
        description=f"RiverSwim with {states} states and {H} steps, as a mixture of three known kernels (simulated)",
        mdp=mdp,
        features=FeatureMap(phi=make_river_rewards(states), kernels=make_river_kernels(states)),
    )


def _sample_mixture(values: Mapping[str, int], seed: int) -> Dataset:
    return sample_dataset(_make_mixture, values, seed=seed, public_reward=True)


LINEAR_MIXTURE = Environment(
    name="linear-mixture",
    title="RiverSwim as a mixture of three known kernels",
    source="Strehl & Littman 2008, with the numbers of Chowdhury & Zhou's experiments; the kernels are ours",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        Parameter(name="S", default=6, kind="count", meaning="length of the chain, at least 2"),
    ),
    sample=_sample_mixture,
    model=_make_mixture,
)


_LONGEST = np.sqrt(7.0)  # of the printed features
_STREAM = 0x61  # of the draw of α and r_h
_FIRST = 0.6  # p, the printed behaviour's probability of action 0 (Appendix G)
UNIFORM, PRINTED = 1, 2  # behaviours


def make_features() -> NDArray[np.float64]:
    """Features φ/√7, shape (2, 100, 10), of norm at most 1.

    φ(s, a) = (bits of a, δ(s, a), 1 − δ(s, a)) with δ = 1 where 1{s = 0} = 1{a = 0}, for two states, 100 actions and d
    = 10. As printed, φ has norm up to √7 (at most six bits below 100, and one of the last two); φ/√7 with √7·ν_h and
    √7·θ_h is the same model.
    """
    phi = make_printed_features()
    phi /= _LONGEST
    return phi


def draw_model(*, H: int, seed: int) -> FiniteMDP:
    """Model of H steps; per step α_{h,1}, α_{h,2} and r_h are drawn uniformly.

    P_h(0 | s, a) is α_{h,1} where δ = 1 and α_{h,2} elsewhere; α and r_h are uniform on [0, 1], drawn from the seed
    `model`. The reward of a step is its mean ⟨φ, θ_h⟩, without noise: it is in [0, 1] as printed, at most ½ + max(r_h,
    1 − r_h)/2. It changes with the step and is not public. The first state is uniform.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    alpha, r = rng.random((H, 2)), rng.random(H)
    measures = np.zeros((H, DIMENSION, STATES))  # ν_h(s′), Appendix G
    measures[:, 8:, 0], measures[:, 8:, 1] = alpha, 1.0 - alpha
    none, half = np.zeros(H), 0.5 - r / 2  # θ_h, Appendix G
    theta = np.stack([r / 8, none, r / 8, half, r / 8, none, r / 8, none, r / 2, half], axis=-1)
    phi = make_printed_features()
    return FiniteMDP(
        horizon=H,
        transition=np.einsum("sad,hdt->hsat", phi, measures),
        reward=np.einsum("sad,hd->hsa", phi, theta)[..., np.newaxis],
        initial=np.full(STATES, 1.0 / STATES),
    )


def make_behaviour(number: int, H: int) -> NDArray[np.float64] | None:
    """Behaviour policy: None for 1, the uniform one; (H, 2, 100) for 2, the printed one (Appendix G).

    Raises:
        ParameterError: There is no behaviour with that number.
    """
    if number not in {UNIFORM, PRINTED}:
        message = (
            f"behaviour: expected {UNIFORM} (every action equally often) or {PRINTED} (action 0 six times in ten, the "
            f"others equally often, as printed), got {number}"
        )
        raise ParameterError(message, name="behaviour", given=number)
    if number == UNIFORM:
        return None
    policy = np.full((H, STATES, ACTIONS), (1 - _FIRST) / (ACTIONS - 1))
    policy[..., 0] = _FIRST
    return policy


def _make_synthetic(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the parameter `model` is the seed
    H, number = values["H"], values["model"]
    return make_world(
        name="linear-synthetic",
        description=f"the synthetic linear MDP of 2 states, 100 actions and {H} steps, number {number} (features / √7)",
        mdp=draw_model(H=H, seed=number),
        features=FeatureMap(phi=make_features()),
        facts={"model seed": number},
    )


def _sample_synthetic(values: Mapping[str, int], seed: int) -> Dataset:
    behaviour = make_behaviour(values["behaviour"], values["H"])
    return sample_dataset(_make_synthetic, values, seed=seed, public_reward=False, behaviour=behaviour)


LINEAR_SYNTHETIC = Environment(
    name="linear-synthetic",
    title="The papers' synthetic linear MDP, features scaled to norm 1",
    source="Qiao & Wang 2022, Appendix G, after Min et al. 2021 and Yin et al. 2022; the benchmark of Sahu 2025 too",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        Parameter(name="model", default=1, kind="count", meaning="number of the model: the seed of its draw"),
        Parameter(
            name="behaviour",
            default=UNIFORM,
            kind="count",
            meaning="1 acts uniformly, 2 as printed: action 0 six times in ten; of datasets",
        ),
    ),
    sample=_sample_synthetic,
    model=_make_synthetic,
    usual_for=("features",),
)
