"""Private algorithms from other papers, one short file each: declared as in their papers, and judged."""
