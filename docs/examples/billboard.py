"""Prove joint DP by the billboard lemma.

Every action is computed from noisy public releases, the billboard, and the user's own
data. So joint DP of the actions follows if the releases are private, and is unproved,
not refuted, if they lose more than the claim.
"""

import privcheck

for name in ("private-ucb-vi-central", "private-ucb-vi-calibrated"):
    verdict = privcheck.verify_claim(name)
    print(f"{name}: claims {verdict.claim}")
    loss = f"{verdict.lower_ratio:.6g} to {verdict.upper_ratio:.6g} of the claim"
    print(f"    the releases lose {loss}, joint DP {verdict.joint}")
