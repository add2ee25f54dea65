"""Naive twins: what the fast kernels do, in plain loops that share no code with them."""
