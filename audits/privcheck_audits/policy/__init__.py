"""The policy view: whole agents, of which only what they put out is looked at.

Imports: privcheck, algorithms' worlds, and all rooms but blackbox. Promises: the score is learned on runs that are not
counted.
"""

from __future__ import annotations
