"""`python -m privcheck` is the command `privcheck`."""

from privcheck.cli.main import main

if __name__ == "__main__":
    main(prog_name="privcheck")
