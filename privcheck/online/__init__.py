"""Agents that learn while they act, driven stepwise: the face that runs and audits share, the record, the driver."""
