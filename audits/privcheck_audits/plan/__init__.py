"""Audit plans: one for all algorithms, from what is registered; requests, one runner for every test, pictures.

Imports: privcheck, bounds and engine. Promises: a request that is out of range is refused before a trial is run; no
bound depends on a picture.
"""

from __future__ import annotations
