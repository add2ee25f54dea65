"""The auditors: they run mechanisms on neighbouring data and bound the privacy loss from below.

Rooms, from the lowest: `bounds` (statistics), `engine` (blocks of trials), `plan` (requests, results, pictures),
`shuffled`, `releases`, `lockstep`, `policy` (views of an algorithm), and `blackbox` (any function), which needs no
view.

Imports: privcheck, and worlds of privcheck_algorithms; nothing imports audits but by the registry.

Promises: a lower bound is never above the truth, but with the stated error rate; an audit that did not run the agent
says so.
"""

from __future__ import annotations
