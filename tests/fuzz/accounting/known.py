"""Jobs that were once below the truth, or took forever: asked again in every run."""

from __future__ import annotations

from typing import Final

from .jobs import Job
from .parts import RELATION, Part


def _job(number: int, *parts: Part, delta: float = 1e-5, share: float = 0.5, rate: float = 0.01, many: int = 66) -> Job:
    return Job(60 * number, parts, (delta,), (share,), rate, many)


def _among(epsilon: float, users: int) -> Part:
    return Part("shuffled_randomized_response", {"epsilon": epsilon, "users": users, **RELATION})


_POISSON = Part("poisson_gaussian", {"std": 1.0, "sensitivity": 3.0, "rate": 0.1, **RELATION})
_REDRAWN = Part("with_replacement", {"std": 8.98, "users": 21, "draws": 8, "relation": "zero-out"})
_GROUP = Part(
    "group", {"what": Part("poisson", {"event": _REDRAWN, "rate": 0.0188, "relation": "zero-out"}, 3), "size": 2}, 2
)
_RARELY_LARGE = Part("poisson", {"event": _GROUP, "rate": 0.163, "relation": "zero-out"})

KNOWN: Final = (
    _job(0, _among(0.84, 3), delta=0.1667),
    _job(1, _among(0.21, 8)),
    _job(2, _among(0.84, 6)),
    _job(3, _among(0.84, 28)),
    _job(4, Part("pure", {"epsilon": 0.3}, 5), Part("zcdp", {"rho": 0.1})),
    _job(5, Part("laplace", {"scale": 0.02}), Part("laplace", {"scale": 0.021})),
    _job(
        6, Part("discrete_gaussian", {"std": 0.616, "sensitivity": 3}), Part("gaussian", {"std": 1.36}), delta=0.00603
    ),
    _job(7, _POISSON, Part("shuffled_bits", {"users": 50, "probability": 0.9}), delta=0.1),
    _job(
        8,
        Part("shuffled_bits", {"users": 80, "probability": 0.2}),
        Part("shuffled_bits", {"users": 80, "probability": 0.8}),
    ),
    _job(
        9,
        Part(
            "tree",
            {
                "node": Part("poisson_gaussian", {"std": 1.0, "rate": 0.01, **RELATION}),
                "leaves": 8,
                "participations": 1,
            },
            4,
        ),
    ),
    _job(10, Part("laplace", {"scale": 1e11}, 9)),
    _job(11, Part("zcdp", {"rho": 1e-28})),
    _job(12, Part("poisson_gaussian", {"std": 0.04, "rate": 0.01, **RELATION})),
    _job(13, Part("approximate", {"epsilon": 0.3, "delta": 1e-4}), delta=1e-4),
    _job(14, Part("discrete_gaussian", {"std": 100.0}, 10**4)),
    _job(15, Part("poisson_gaussian", {"std": 0.4376, "rate": 0.00215, **RELATION}, 2), many=100),
    _job(16, Part("poisson_gaussian", {"std": 1.1, "rate": 0.01, **RELATION}, 10**4)),
    _job(17, Part("nested", {"made": Part("tree", {"node": _RARELY_LARGE, "leaves": 3, "participations": 1})}, 3)),
)
