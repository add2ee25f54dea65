"""Public features: what is refused when they are made, and what worlds and data say of them."""

import numpy as np
import pytest

from privcheck.data.features import FeatureMap, one_hot_features
from privcheck.data.finite_models import FiniteMDP
from privcheck.errors import ParameterError
from privcheck.runtime.results import World


def world(features: FeatureMap | None = None) -> World:
    mdp = FiniteMDP(
        horizon=2, transition=np.full((1, 2, 3, 2), 0.5), reward=np.zeros((1, 2, 3, 1)), initial=np.eye(2)[0]
    )
    return World(name="w", description="w", mdp=mdp, features=features)


@pytest.mark.parametrize(
    ("phi", "words"),
    [
        (np.zeros((2, 3)), r"expected shape \(S, A, d\)"),
        (np.zeros((2, 3, 0)), "none of them 0"),
        (np.full((2, 3, 1), np.nan), "finite numbers"),
        (np.full((2, 3, 4), 0.6), "expected at most 1, and 6 features are longer: divide all of them by 1.2"),
        ([[[1.0]]], "expected an array of numbers"),
        (np.full((2, 3, 4), "a"), "expected an array of numbers"),
    ],
)
def test_features_that_mean_nothing_are_refused(phi, words):
    with pytest.raises(ParameterError, match=words):
        FeatureMap(phi=phi)


def test_kernels_are_of_the_features_states_and_actions():
    with pytest.raises(ParameterError, match=r"expected shape \(d1, 2, 3, 2\)"):
        FeatureMap(phi=np.zeros((2, 3, 1)), kernels=np.zeros((4, 2, 2, 2)))
    one = FeatureMap(phi=np.zeros((2, 3, 5)), kernels=np.zeros((4, 2, 3, 2)))
    assert one.sizes == {"d": 5, "d1": 4, "d2": 5}


def test_a_world_has_a_coordinate_for_every_pair_where_no_features_are_known():
    plain = world()
    assert plain.sizes == {"H": 2, "S": 2, "A": 3, "d": 6}
    np.testing.assert_array_equal(plain.feature_map.phi.reshape(6, 6), np.eye(6))
    assert world(one_hot_features(2, 3)).sizes["d"] == 6


def test_features_of_another_world_are_refused():
    with pytest.raises(ParameterError, match=r"give phi of shape \(2, 3, d\)"):
        world(one_hot_features(3, 2))


def test_features_are_copied_and_frozen():
    phi = np.zeros((2, 3, 1))
    one = FeatureMap(phi=phi)
    phi[0] = 5.0
    assert one.phi.max() == 0.0
    assert not one.phi.flags.writeable
