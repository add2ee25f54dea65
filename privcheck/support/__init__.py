"""What every room may use and no room owns: files, plug-ins, compiled kernels, how values show and encode themselves.

Imports `privcheck.errors` only. Promises: nothing here knows privacy; every module loads in a few milliseconds and
pulls in neither NumPy, SciPy, SymPy, Numba nor Click.
"""
