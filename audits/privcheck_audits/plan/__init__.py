"""Audit plans: one for all algorithms, from the registry; requests, one runner for every test, pictures.

Imports: privcheck, bounds and engine. Promises: a request out of range is refused before any trial is run; no bound
depends on a picture.
"""

from __future__ import annotations
