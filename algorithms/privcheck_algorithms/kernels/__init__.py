"""Loops that several agents share, compiled by Numba and cached on disk.

Finite models and exact values in them, counters in memory, optimism, regression on features, mixtures, and batches
with one public policy. A file of kernels has little else, because a change to it compiles all of it anew.

Imports: privcheck alone. Promises: no kernel draws noise; all randomness comes in as a Generator or as numbers.
"""
