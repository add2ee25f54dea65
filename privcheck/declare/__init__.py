"""What an algorithm releases and claims: statistics, mechanisms, releases, procedures, declarations.

Imports `errors`, `support`, `terms` and `data`, and `accounting` for the events that mechanisms and procedures cost.
Promises: a declaration that exists is well-formed, sensitivities are exact expressions derived or stated as such, and
nothing here adds up a cost: that is `privcheck.pricing`.
"""
