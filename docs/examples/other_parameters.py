"""Judge the same algorithm at other parameters.

Lemma 5.1 of Chowdhury & Zhou (2022) uses a sensitivity that belongs to another
neighbouring relation, and by how much it is too small depends on the number of steps H.
With one step, a bandit, the claim holds, and with more steps it fails.
"""

import privcheck

for steps in (1, 2, 5, 20):
    verdict = privcheck.verify_claim("private-ucb-vi-central", H=steps)
    print(f"H = {steps:2}: {verdict.verdict}, loss {verdict.lower_ratio:.3f} × claim")

print(verdict.findings[0].message)
