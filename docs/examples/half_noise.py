"""Audit a function with half of its noise.

A library's count claims ε = 1 and draws Laplace noise of scale 0.5, where 1 is needed.
A hundred thousand runs on each of two neighbouring datasets refute the claim.
"""

from privcheck import PureDP, audit_mechanism


def noisy_count(dataset, size, rng):
    return len(dataset) + rng.laplace(0, 0.5, size)


everybody = ["Ada", "Emmy", "Sofia"]
without_one = everybody[:-1]

result = audit_mechanism(noisy_count, PureDP(1), neighbours=[(everybody, without_one)])

print(result.verdict)
print(f"ε ≥ {result.lower:.2f} with {result.confidence:.0%} confidence")
