"""Compare a private agent with its twin without noise.

DP-APVI learns a policy from the noisy counts of logged episodes, and its twin APVI from
the exact ones. The more budget it has, the nearer its policy comes to the twin's, and
with little it is worth little more than random play.
"""

import privcheck

river = {"env": "riverswim", "H": 6, "S": 4, "n": 2_000}
for rho in (1, 5, 10):
    ran = privcheck.run("dp-apvi", rho=rho, replicates=20, **river)
    value = ran.value
    print(f"ρ = {rho:2}: {value.mean:.3f} ± {value.std:.3f}", end=", ")
    print(f"twin {value.baseline:.3f}, random play {value.references['random']:.3f}")
figure = ran.plot().svgs[0]
