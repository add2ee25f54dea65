"""What each command computes, as values of `privcheck.reports.values`; `cli` parses, prints and sets exit codes."""
