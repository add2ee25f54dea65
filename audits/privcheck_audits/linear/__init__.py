"""Linear agents under audit: the instance, the declared noise, and what the papers do with noisy statistics."""
