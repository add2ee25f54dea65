"""The world in which audits run linear agents: its features are as far apart as any, and its others lean nowhere."""

import numpy as np
import pytest

from privcheck.errors import ParameterError
from privcheck_algorithms.linear.audit_worlds import audit_world, ruler_marks


@pytest.mark.parametrize("sizes", [{}, {"H": 1, "S": 3}, {"H": 4, "S": 5, "A": 3, "d": 5, "K": 9}, {"d2": 3, "S": 40}])
def test_first_and_last_state_move_gram_matrices_as_far_as_any_two_features(sizes):
    world = audit_world(sizes)
    phi = world.feature_map.phi
    for name, size in {"d": sizes.get("d2", 2), **sizes}.items():
        assert name == "K" or world.sizes[name] == size
    apart = np.outer(phi[0, 0], phi[0, 0]) - np.outer(phi[-1, 1], phi[-1, 1])
    assert np.linalg.norm(apart) == pytest.approx(np.sqrt(2))
    crowd = int(world.mdp.initial.argmax())
    assert (world.mdp.transition[0, crowd, :, crowd] == 1).all()
    assert (phi[crowd, :, 0] == phi[crowd, :, 1]).all()
    assert (phi[crowd] == phi[crowd, 0]).all()
    assert world.mdp.states == 3 or (phi[-3] == -phi[0]).all()
    marks = phi[1:-3, 1, 1] / phi[1:-3, 0, 0]
    assert (np.diff(marks) > 0).all()
    np.testing.assert_allclose(marks + marks[::-1], 2)


def test_one_dimension_has_two_features_and_no_marks_are_none():
    phi = audit_world({"d": 1, "S": 4}).feature_map.phi
    assert phi.shape == (4, 2, 1)
    assert phi[0, 0, 0] - phi[-1, 0, 0] == 1
    assert ruler_marks(0).size == 0
    assert np.abs(ruler_marks(40)).min() < 1e-6


@pytest.mark.parametrize("sizes", [{"S": 2}, {"A": 1}, {"d": 0}, {"H": 0}])
def test_too_small_is_refused(sizes):
    with pytest.raises(ParameterError, match=next(iter(sizes))):
        audit_world(sizes)
