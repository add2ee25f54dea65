"""The papers' algorithms, one folder per paper, and their shared code.

A paper's folder has a README (theorem and code side by side, deviations), the declaration of the releases, and the
agent; `__init__` registers it. Shared: `kernels` (loops compiled by Numba), `privatizers`, `online` and `linear`
(agents), `trained` (policies trained on episodes), `environments` (worlds), `baselines` (twins without noise),
`gallery` (declarations without an agent), `papers`.

Imports: privcheck, never audits. A paper imports shared code, and another paper only if it extends its algorithm;
imports between folders go one way: papers → linear → online → privatizers → kernels.

Promises: the algorithm registered under a name is the one that is run, charged and audited.
"""

from __future__ import annotations
