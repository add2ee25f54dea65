"""Price DP-SGD at a δ, with a bound from below.

A thousand rounds of noisy clipped gradients are priced on Poisson samples of one user
in a hundred, for a user who is added or removed. `upper` is certified never to be below
the true ε, and `lower` never above it, so that their distance is all that is unknown.
"""

from privcheck import accounting as acc

rounds = acc.poisson_gaussian(std=1, rate=0.01, relation="add-remove", count=1000)
curve = acc.compose(rounds)

for delta in (1e-5, 1e-6, 1e-7):
    cost = curve.epsilon(delta=delta)
    print(f"δ = {delta:.0e}: {cost.lower:.5f} ≤ ε ≤ {cost.upper:.5f}")
replaced = acc.poisson_gaussian(std=1, rate=0.01, relation="replace-one", count=1000)
cost = acc.compose(replaced).epsilon(delta=1e-6)
print(f"for a user who is replaced by another: ε ≤ {cost.upper:.3f} at δ = 1e-06")
