"""Outputs of a shuffler: pairs that dominate the multiset of messages."""
