"""Certificates of verdicts: documents that `privcheck_check` accepts or rejects without trusting this package.

The form is that of `docs/certificates.md`. `certificates` writes the documents that follow from a verdict, or says
which part of the declaration, of the proof or of the pair has no form. It never decides anything: a document whose
conclusion does not follow is rejected by the checker, which computes every cost and every loss itself.
"""

from __future__ import annotations

from privcheck.verification.certificates.canonical import number
from privcheck.verification.certificates.documents import FORMAT, Certificate, certificates, hash_json

__all__ = ["FORMAT", "Certificate", "certificates", "hash_json", "number"]
