"""The command line: arguments, headless runs, sub-commands."""
