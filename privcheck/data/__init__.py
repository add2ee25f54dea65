"""What agents learn from: trajectories, features, finite models, and how files become them.

Imports `errors`, `support` and `terms` only. Promises: a value that exists is valid, a file that is read is checked
row by row, and every change that a preparation makes is counted and reported.
"""
