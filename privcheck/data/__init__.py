"""Data that agents learn from: trajectories, features, finite models, and the readers of files.

Imports `errors`, `support` and `terms` only. Promises: every value is validated on construction, a file is checked
row by row, and every change that a preparation makes is counted and reported.
"""
