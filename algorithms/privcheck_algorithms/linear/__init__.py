"""What linear agents share: the instance they are audited on, the declared noise, and noisy ridge regression."""
