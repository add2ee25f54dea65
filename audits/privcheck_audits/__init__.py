"""Audits: runs of mechanisms on neighbouring data, and lower bounds on their privacy loss.

Folders, from the lowest: `bounds` (statistics), `engine` (blocks of trials), `plan` (requests, results, pictures),
`shuffled`, `releases`, `lockstep`, `policy` (views of an algorithm), and `blackbox` (any function), which uses no
view.

Imports: privcheck, and worlds of privcheck_algorithms; other code reaches audits only through the registry.

Promises: a lower bound is above the truth only with the stated error rate; an audit without a run of the agent says
so.
"""

from __future__ import annotations
