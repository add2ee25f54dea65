"""The command line, one file per group of commands: parses, shows progress, prints, sets exit codes.

Imports every room but `testing`; Click is imported here only, except that `privcheck.commands.ledger_client` asks it to
close a store when the command ends. Promises: `privcheck --help` loads no scientific package, misuse ends with exit
code 2 and one message, and nothing is computed here.
"""
