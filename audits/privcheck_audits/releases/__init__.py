"""The releases view: canaries, scores and attacks on what is declared to leave."""
