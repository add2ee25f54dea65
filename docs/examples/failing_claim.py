"""Refute a published claim.

The sparse vector of Lee & Clifton (2014) claims ε-DP and does not have it. The verdict
comes with a witness, two neighbouring datasets that lose more than the claim.
"""

import privcheck
from privcheck.reports.pair_picture import draw_pair

verdict = privcheck.verify_claim("sparse-vector-4")

print(verdict.verdict)
print(verdict.sentence)
print(verdict.witness.words)
figure = draw_pair(verdict)
