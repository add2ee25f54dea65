"""Privatizers of the online agents: exact counts in, noisy tables out; central (tree), local, and disjoint batches.

They draw nothing: the fresh noise of an episode is handed to them in bulk (`algorithms.privatizers.noise`), and they
say where it goes. Agents see what they return and nothing else.
"""
