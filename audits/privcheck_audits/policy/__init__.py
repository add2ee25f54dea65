"""The policy view: whole agents, of which only what they put out is looked at."""
