"""What leaves a shuffler, under audit: messages by their exact likelihood ratio, and the bounds from them."""
