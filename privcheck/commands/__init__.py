"""Results of the commands, as values of `privcheck.reports.values`.

Imports every room but `cli`, `testing` and the HTTP service. Promises: no parsing and no printing; the results are what
`--json`, the functions of `privcheck.api` and the service show.
"""

from __future__ import annotations
