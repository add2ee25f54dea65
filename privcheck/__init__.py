"""privcheck: privacy accounting, verification and auditing for reinforcement learning."""
