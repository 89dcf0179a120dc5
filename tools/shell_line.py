"""A line that the user typed after `!`, in a terminal of its own and a folder of its own."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tools.clean import reveal_name
from tools.contract import (
    Captured,
    Command,
    OutputSoFar,
    Progress,
    TerminalDisplay,
    ToolContext,
    ToolOutput,
)
from tools.job_board import Caller
from tools.shell_folder import folder_script
from tools.shell_output import shown_runs
from tools.terminal.values import ShellTerminal, TerminalRows

LARGEST_WORD = 128 * 1024
"""Bytes of a word of a program on Linux, its end included (MAX_ARG_STRLEN)."""
PIECE = 30_000
"""Characters of a piece of a longer command, each of up to 4 bytes."""


def script_arguments(command: str) -> tuple[str, ...]:
    """The words behind `-c` that run a command: the system takes no single word of more than 128 KiB.

    A longer command is handed over in pieces, which the shell joins, drops as its own words, and runs.
    """
    if len(command.encode("utf-8", "surrogatepass")) < LARGEST_WORD:
        return (command,)
    pieces = [command[place : place + PIECE] for place in range(0, len(command), PIECE)]
    joined = "".join(f"${{{number}}}" for number in range(1, len(pieces) + 1))
    return (f'eval "set --\n{joined}"', "bash", *pieces)


class ShellLine(Struct, frozen=True):
    """One line: its command with the folder around it, its caller, and where it runs."""

    command: Command
    caller: Caller
    context: ToolContext
    place: str
    """Folder it runs in as it is shown; empty for the conversation's."""

    def report(self, progress: Progress) -> None:
        """Pass progress on, rows with the folder."""
        is_placed = isinstance(progress, TerminalRows | OutputSoFar)
        self.context.report(replace(progress, folder=self.place) if is_placed else progress)

    def settled(self, output: ToolOutput, captured: Captured) -> ToolOutput:
        """The result with its colours and folders; `captured` is all that the terminal showed."""
        facts = captured.terminal
        if facts is None or not isinstance(output.display, TerminalDisplay):
            return output
        display = replace(output.display, runs=shown_runs(captured, output.display.output), folder=self.place)
        lines = [output.text, *([f"[in {self.place}]"] if self.place else [])]
        ends_in = facts.folder if facts.folder else None
        if ends_in is not None and ends_in == os.path.realpath(self.context.working_dir):
            ends_in = ""
        return replace(output, text="\n".join(lines), display=display, folder=ends_in)


def shell_line(command: Command, line: str, title: str, context: ToolContext, shell: ShellTerminal) -> ShellLine:
    """Prepare a line; only bash can say in which folder it ends."""
    caller = Caller(context.conversation_id, context.call_id, title, shell.size)
    environment = {**command.environment, "GIT_TERMINAL_PROMPT": "1"}
    command = replace(command, timeout=None, environment=environment, terminal=True)
    if Path(command.argv[0]).name == "bash":
        script = folder_script(line, shell.folder)
        command = replace(command, argv=(*command.argv[:2], *script_arguments(script.script)))
        caller = replace(caller, mark=script.mark)
        return ShellLine(command, caller, context, reveal_name(shell.folder) if shell.folder else "")
    return ShellLine(command, caller, context, "")
