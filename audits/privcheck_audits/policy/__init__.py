"""The policy view: whole agents, observed only through their outputs.

Imports: privcheck, algorithms' worlds, and all folders except blackbox. Promises: the score is learned on runs
outside the counted ones.
"""

from __future__ import annotations
