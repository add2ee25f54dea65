"""Utilities for every room: files, plug-ins, compiled kernels, display and encoding of values.

Imports `privcheck.errors` only. Promises: nothing here depends on privacy; every module loads in a few milliseconds
and imports neither NumPy, SciPy, SymPy, Numba nor Click.
"""
