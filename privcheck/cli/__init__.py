"""The command line, one file per group of commands: parses, shows progress, prints, sets exit codes.

Imports every room but `testing`; only this room and the demo of the service import Click. Promises: `privcheck --help`
loads no scientific package, misuse ends with exit code 2 and one message, and nothing is computed here.
"""
