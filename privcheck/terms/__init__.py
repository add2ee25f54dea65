"""Terms for stating privacy: exact numbers and symbols, parameters, guarantees, the unit of privacy.

Imports `privcheck.errors` and `privcheck.support` only. Promises: values are exact and checked where they are made;
SymPy is imported by `privcheck.terms.symbols` and nowhere else; `privcheck.terms.unit` loads neither SymPy nor NumPy.
"""
