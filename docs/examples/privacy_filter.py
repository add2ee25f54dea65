"""Stop before the budget is spent.

Whoever chooses the next query by the answers so far needs a privacy filter, which keeps
a sum and a cap. It refuses what does not fit any more, and the guarantee is that of the
cap, whatever the answers were.
"""

from privcheck import accounting as acc
from privcheck.errors import BudgetError

budget = acc.Filter.within(epsilon=3, delta=1e-6, currency="zcdp")
print(f"cap: ρ = {float(budget.cap.amount):.4f}")

answered = 0
try:
    while True:
        budget.spend(acc.gaussian(std=12))  # as precise as the analyst likes
        answered += 1
except BudgetError:
    print(f"{answered} answers, and the next one is refused")

print("a rougher one fits:", budget.can_afford(acc.gaussian(std=40)))
print(f"guarantee: ε = {budget.epsilon(delta=1e-6).upper:.4f} at δ = 1e-6")
