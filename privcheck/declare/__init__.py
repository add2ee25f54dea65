"""Releases and claims of an algorithm: statistics, mechanisms, releases, procedures, declarations.

Imports `errors`, `support`, `terms` and `data`, and `accounting` for the events that mechanisms and procedures cost.
Promises: every declaration is well-formed, sensitivities are exact expressions derived or stated as such, and nothing
here adds up a cost: that is `privcheck.pricing`.
"""
