"""Pages for people: the ledger as HTML without scripts, made by the server, with the roles of the JSON API.

Imports the session and the reading endpoints of the service. Promises: a page writes only by a form of its visitor's
session.
"""

from __future__ import annotations
