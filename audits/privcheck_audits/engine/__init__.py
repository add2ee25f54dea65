"""Blocks of trials: seeds, counts, pools, checkpoints."""
