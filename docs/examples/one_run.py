"""Audit an agent that is too slow to run twice.

Five thousand made-up users, the canaries, enter one run by a fair coin each, and the
audit guesses the coins from what the agent publishes. The claim's whole Gaussian curve
is tested, so that a single run refutes half of the noise.
"""

from privcheck import GaussianDP, audit_one_run


def agent(std):
    def publish(included, rng):  # a noisy count for every canary
        return included + rng.normal(0, std, included.size)

    return publish


for std in (1, 0.5):
    result = audit_one_run(agent(std), GaussianDP(1), canaries=5_000)
    print(f"noise {std}: {result.verdict}, μ ≥ {result.lower:.2f} of 1 claimed")
