"""Find what the last bits of floats give away.

Laplace noise of the right scale passes an audit that rounds the outputs first. The
audit of floats looks at their last bits, which tell the exact count behind the noise
whatever ε is.
"""

from privcheck import PureDP, audit_float_noise, audit_mechanism


def noisy_count(count, size, rng):
    return count + rng.laplace(0, 1, size)


pair = [(2.0, 1.0)]
rounded = audit_mechanism(noisy_count, PureDP(1), neighbours=pair, trials=20_000)
print("rounded first:", rounded.verdict)
floats = audit_float_noise(noisy_count, PureDP(1), neighbours=pair, trials=20_000)
print(f"last bits:     {floats.verdict}, ε ≥ {floats.lower:.2f}")
print(floats.method)
