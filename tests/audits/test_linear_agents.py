"""What steps from linear releases to policies share: the noise of streams, and the ruler."""

from __future__ import annotations

import numpy as np

from privcheck.declare.mechanisms import SymmetricGaussianNoise
from privcheck_algorithms.linear.runs import CROWD, PROBE, Stream, make_ruler
from privcheck_audits.engine.kernels import draw


def test_outputs_share_noise_as_their_kind_says():
    noise = SymmetricGaussianNoise(scale=2.0, kind="goe")
    shape, outputs = (2, 3, 3), 7
    fresh, one, tree = (
        Stream(noise=noise, shape=shape, outputs=outputs, kind=kind).draw(np.random.default_rng(1), 5)
        for kind in ("fresh", "one draw", "tree")
    )
    drawn = noise.draw(np.random.default_rng(1), (5, outputs, *shape))
    np.testing.assert_array_equal(fresh, drawn)
    assert (one == one[:, :1]).all()
    node = [drawn[:, t] for t in range(outputs)]  # of the node that ends at t + 1 users
    covers = [[0], [1], [1, 2], [3], [3, 4], [3, 5], [3, 5, 6]]  # 1, 1–2, 1–2 3, 1–4, 1–4 5, 1–4 5–6, 1–4 5–6 7
    for t, nodes in enumerate(covers):
        np.testing.assert_allclose(tree[:, t], sum(node[i] for i in nodes))
    assert max(map(len, covers)) == Stream(noise=noise, shape=shape, outputs=outputs, kind="tree").nodes
    np.testing.assert_array_equal(draw(noise, np.random.default_rng(1), drawn.shape), drawn)
    for each in (fresh, one, tree):
        np.testing.assert_array_equal(each, np.swapaxes(each, -1, -2))


def test_the_others_lean_to_neither_direction():
    ruler = make_ruler(horizon=1, dimension=3, norm=2.0)
    assert (ruler.phi[CROWD] == [1.0, 1.0, 0.0]).all()
    assert (ruler.phi[PROBE] == [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]).all()
    marks = ruler.phi[:PROBE]
    assert (np.diff(marks[:, 1, 1]) > 0).all()
    np.testing.assert_allclose(marks[:, 1, 1] + marks[::-1, 1, 1], 2 * marks[:, 0, 0])
    assert np.linalg.norm(ruler.phi, axis=-1).max() == 2.0
