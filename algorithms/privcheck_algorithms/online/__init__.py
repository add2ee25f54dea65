"""What the tabular online agents share: the world, optimistic planning, the record of a run, blocks and checkpoints."""
