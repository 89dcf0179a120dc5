"""`phoenix completion SHELL` and `phoenix man`."""

from __future__ import annotations

from argparse import Namespace

from phoenix_tui.cli.completion.bash import bash_script
from phoenix_tui.cli.completion.fish import fish_script
from phoenix_tui.cli.completion.man import manual_page
from phoenix_tui.cli.completion.tables import command_tables
from phoenix_tui.cli.completion.zsh import zsh_script
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.output import write_document

_SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}


def run_completion(parsed: Namespace) -> int:
    """Print the script of a shell, or the manual page."""
    tables = command_tables()
    write_document(manual_page(tables) if parsed.command == "man" else _SCRIPTS[parsed.shell](tables))
    return Exit.OK
