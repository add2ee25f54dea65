"""What each command computes, as JSON-able dictionaries; `privcheck.cli` parses, prints and sets the exit code."""
