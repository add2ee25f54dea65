"""Private LinUCB (Shariff & Sheffet 2018): a binary tree over (x, y)(x, y)ᵀ with symmetric Gaussian noise.

A node's noise is (Z + Zᵀ)/√2 with entries of variance 16·m·L̃⁴·ln(4/δ)²/ε², m = ⌈log₂ K⌉ + 1, L̃² = L² + 1. The proof
composes m nodes by the advanced composition theorem; by exact composition they cost about a nineteenth of ε = 1.

The federated version (Dubey & Pentland 2020) keeps one such tree an agent and sends its sums when a determinant of the
agent's *raw* matrix has grown: the time of sending leaks data without noise (Zhou & Chowdhury 2023). The releases cost
the same; the billboard lemma does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Tree
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Column, GramMatrices
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import K, ceil_log2, d, delta, epsilon, expression, log, sqrt, symbol
from privcheck_algorithms.papers import GALLERY

_TITLES = {
    "shariff-sheffet": "Private LinUCB: a tree of noisy Gram matrices of contexts and rewards",
    "federated-linear-bandit": "Federated private LinUCB: noisy trees, sent when a raw determinant has grown",
}
_SOURCES = {
    "shariff-sheffet": "Shariff & Sheffet 2018, Differentially Private Contextual Linear Bandits, Section 4",
    "federated-linear-bandit": "Dubey & Pentland 2020, Differentially-Private Federated Linear Bandits, Algorithm 1",
}
L = symbol("L", "positive")


def _declare(name: str, joint: Joint) -> Declaration:
    size = L**2 + 1
    levels = ceil_log2(K) + 1
    pair = Column("(x, y)", sqrt(size), "(x, y)")
    matrices = GramMatrices(name="Gram matrices of (x, y)", steps=expression(1), dimension=d + 1, vector=pair)
    variance = 16 * levels * size**2 * log(4 / delta) ** 2 / epsilon**2
    return Declaration(
        name=name,
        title=_TITLES[name],
        source=_SOURCES[name],
        origin=Origin(kind="printed", text=_SOURCES[name]),
        relation=ReplaceOne("user"),
        releases=(
            Release(
                "tree",
                matrices,
                SymmetricGaussian(variance=variance, kind="goe"),
                schedule=Tree(leaves=K, counted=levels),
                source=_SOURCES[name],
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source=_SOURCES[name], joint=joint, composition="advanced"),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),
            Parameter(name="delta", default="1e-5", kind="probability", meaning="δ of the claim"),
            Parameter(name="K", default=1000, kind="count", meaning="users, one after the other"),
            Parameter(name="d", default=5, kind="count", meaning="dimension of a context"),
            Parameter(name="L", default=1, kind="positive", meaning="norm of a context, at most"),
        ),
    )


def shariff_sheffet(_: Mapping[str, str]) -> Declaration:
    """Private LinUCB with Gaussian noise; actions are computed from the noisy sums and the user's own context."""
    return _declare("shariff-sheffet", Joint(sees=("billboard", "own data")))


def federated(_: Mapping[str, str]) -> Declaration:
    """Federated version, one agent's tree: the decision to send is computed from others' raw data."""
    return _declare("federated-linear-bandit", Joint(sees=("billboard", "own data", "others' data")))


SHARIFF_SHEFFET, FEDERATED = (
    Algorithm(name=name, title=_TITLES[name], source=_SOURCES[name], paper=GALLERY, declare=declare)
    for name, declare in (("shariff-sheffet", shariff_sheffet), ("federated-linear-bandit", federated))
)
