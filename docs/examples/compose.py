"""Price Gaussian and Laplace releases together.

A thousand Gaussian answers and five hundred Laplace answers cost less together than the
sum of their prices. Every figure states the direction of its error, and `upper` is
never below the truth.
"""

from privcheck import accounting as acc

gaussians = acc.gaussian(std=30, count=1000)  # of queries with sensitivity 1
laplaces = acc.laplace(scale=50, count=500)

for name, events in (
    ("Gaussian", [gaussians]),
    ("Laplace", [laplaces]),
    ("both", [gaussians, laplaces]),
):
    cost = acc.compose(*events).epsilon(delta=1e-6)
    print(f"{name:8}  ε = {cost.upper:.3f} at δ = 1e-6, {cost.direction}")
