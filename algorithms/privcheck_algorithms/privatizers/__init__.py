"""Privatizers of the online agents: exact counts in, noisy tables out; central (tree), local, and disjoint batches.

They draw nothing: what is to be published they hand piece by piece to the channel's side of the kernels
(`privatizers.noise.add`), as `Privatizer` does with `Channel.release`; it draws the declared noise in bulk
and adds it. Agents see what comes back and nothing else.
"""
