"""What is registered, as tests of the audits take it."""

from __future__ import annotations

from privcheck import registry

DP_APVI, DP_APVI_LAPLACE = registry.audit_plan("dp-apvi"), registry.audit_plan("dp-apvi-laplace")
SDP_PE, SDP_PE_AS_PRINTED = registry.audit_plan("sdp-pe"), registry.audit_plan("sdp-pe-as-printed")
ALGORITHMS = {name: registry.algorithm(name) for name in registry.names("algorithms")}
ONLINE = sorted(name for name, one in ALGORITHMS.items() if one.online is not None and one.declare is not None)
