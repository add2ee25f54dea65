"""Judge the statements of a paper one by one.

A paper says several things about one algorithm, and each is quoted with its place and
judged for the neighbours that it names. A lemma about releases is refuted by a pair of
users; what follows from it for the users' actions is then unproved.
"""

import privcheck
from privcheck.reports.pair_picture import draw_pair

verdict = privcheck.verify_claim("private-ucb-vi-central")

print(verdict.claim, "–", verdict.verdict)
for judged in verdict.statements:
    said = judged.statement
    print(f"{said.name}: “{said.quotation}”")
    print(f"    {judged.standing}: {judged.why}")
figure = draw_pair(verdict)
