"""Audit a shuffled protocol.

Every user adds fair coin flips to a bit, and the server sees all bits in random order,
that is their sum. With the flips of all ten users the sum passes the audit, and with
those of three it does not.
"""

import numpy as np

from privcheck import ApproxDP, audit_mechanism
from privcheck import accounting as acc

USERS, FLIPS = 10, 4


def shuffled_sum(senders):  # the users whose program adds flips
    def protocol(bits, size, rng):
        return bits.sum() + rng.binomial(senders * FLIPS, 0.5, size)

    return protocol


bits = np.zeros(USERS, int)
changed = bits.copy()
changed[0] = 1
event = acc.shuffled_bits(users=USERS, messages=FLIPS, probability=0.5)
print(f"accountant: ε ≤ {acc.compose(event).epsilon(delta=1e-3).upper:.3f}")
for senders in (USERS, USERS // 3):
    result = audit_mechanism(
        shuffled_sum(senders), ApproxDP(1, "0.001"), neighbours=[(changed, bits)]
    )
    print(f"{senders} users add flips: {result.verdict}, ε ≥ {result.lower:.3f}")
