"""Audits of shuffler outputs: messages scored by their exact likelihood ratio, and the bounds from them.

Imports: privcheck, bounds, engine and plan. Promises: the score is the exact likelihood ratio of the messages.
"""

from __future__ import annotations
