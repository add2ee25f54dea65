"""What each command computes, as JSON-able dictionaries; `cli` parses, prints and sets exit codes."""
