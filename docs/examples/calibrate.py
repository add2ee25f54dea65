"""Find the least noise for a budget.

A budget of ε = 1 at δ = 10⁻⁶ has to pay for a hundred Gaussian answers. The result is
certified to meet the budget, and a limit on what an attacker can do serves as a budget
too.
"""

from privcheck import accounting as acc


def answers(std):
    return acc.gaussian(std=std, count=100)  # of queries with sensitivity 1


noise = acc.calibrate((1.0, 1e-6), answers)
print(f"standard deviation {noise.scale:.3f}, ε ≤ {noise.figure.upper:.6f}")

rarely = acc.TruePositiveRate(at=0.01, most=0.05)  # at 1 % false alarms 5 % are found
limited = acc.calibrate(rarely, answers)
print(f"standard deviation {limited.scale:.3f} for the attacker's limit")

most = acc.calibrate_whole((1.0, 1e-6), lambda n: acc.gaussian(std=50, count=n))
print(f"with standard deviation 50 there are {most.value} answers")
