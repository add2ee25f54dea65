"""Draw the regret of a private online agent.

An online agent serves one user after another, and makes each user's policy from noisy
sums about those before. Its twin is the same agent without noise, and the grey lines
are policies that learn nothing.
"""

import privcheck

river = {"env": "riverswim", "H": 6, "S": 4, "K": 5_000}
ran = privcheck.run("calibrated-ucb-vi", replicates=5, **river)

regret = ran.regret
print(f"regret {regret.mean:.0f}, {regret.share_of_uniform:.1%} of uniform play's")
print(f"twin without noise {regret.baseline:.0f}")
figure = ran.plot().svgs[1]
