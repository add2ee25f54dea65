"""The papers' algorithms, one folder a paper, and what several of them share.

A paper's folder has a README (theorem and code side by side, deviations), the declaration of what leaves, and the
agent; `__init__` registers it. Shared: `kernels` (loops compiled by Numba), `privatizers`, `online` and `linear`
(agents), `environments` (worlds), `baselines` (twins without noise), `gallery` (declarations without an agent),
`papers`.

Imports: privcheck; a paper imports what is shared, and another paper only where it extends its algorithm. Nothing here
imports audits. Arrows between folders run one way: papers → linear → online → privatizers → kernels.

Promises: whatever is registered under a name is what runs, what is charged and what is audited.
"""

from __future__ import annotations
