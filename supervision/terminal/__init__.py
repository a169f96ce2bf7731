"""The command line: what `postroom` and `python -m supervision` do."""
