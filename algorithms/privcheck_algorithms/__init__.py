"""The papers' algorithms, one folder each, and what several of them share."""
