"""`[format]` of the user's config.toml: programs that format an edited file, supervised and limited."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from phoenix_tui.config.allowed_folders import AllowedFolders
from phoenix_tui.config.live_files import FileStamp, stamp
from phoenix_tui.lifecycle.loading import load
from tools.clean import clean_line
from tools.contract import Enforcement, PathOrder, Sandbox, SandboxMode, ToolContext
from tools.files.formatting import Formatted
from tools.files.own_files import MOST_SETTINGS, read_regular
from tools.process.start import Processes
from tools.refusals import reason_words
from tools.services import ProgramLimits, ProgramResult, ServiceCommand

if TYPE_CHECKING:
    from phoenix_tui.config.language_servers import Formatter
    from tools.lsp.definitions import LanguageServer

SECONDS: Final = 10.0
OUTPUT: Final = 16 * 1024 * 1024
"""Bytes; no larger file can be edited."""
LIMITS: Final = ProgramLimits(SECONDS, OUTPUT)
FOLDERS: Final = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Folders of a project whose programs may run where the user has allowed it."""
LONGEST_WORDS: Final = 200


class UserFormatters:
    """Implements `tools.files.formatting.TextFormatter`; the tables are read with an edit after they changed."""

    def __init__(
        self, file: Path, environment: Mapping[str, str], processes: Processes, answers: AllowedFolders
    ) -> None:
        self._file, self._environment, self._processes, self._answers = file, environment, processes, answers
        self._known: tuple[FileStamp, Sequence[Formatter]] | None = None

    async def format(self, path: Path, text: str, context: ToolContext) -> Formatted | None:
        """Format a text with the first formatter whose pattern fits the name."""
        for formatter in await self._formatters():
            if fnmatch.fnmatchcase(path.name, formatter.pattern):
                return await self._formatted(formatter, path, text, context)
        return None

    async def _formatters(self) -> Sequence[Formatter]:
        now = stamp(self._file)
        if self._known is None or self._known[0] != now:
            self._known = (now, await _read(self._file) if now is not None else ())
        return self._known[1]

    async def _formatted(self, formatter: Formatter, path: Path, text: str, context: ToolContext) -> Formatted:
        from tools.lsp.programs import program_of, server_environment  # noqa: PLC0415 - with the first formatter

        folder = context.working_dir
        allowed = self._answers.is_allowed(folder)
        argv = await asyncio.to_thread(program_of, _as_program(formatter), folder, folder, allowed=allowed)
        name = clean_line(Path(formatter.command[0]).name)
        if not argv:
            return Formatted(name, trouble="its program was not found outside of the project")
        sandbox = await self._sandbox(context, allowed=allowed)
        if sandbox is None:
            return Formatted(name, trouble="not run: this system can confine no program; /lsp allows it in this folder")
        command = ServiceCommand(
            tuple(word.replace("{file}", str(path)) for word in argv),
            folder,
            server_environment(self._environment, folder, allowed=allowed),
            sandbox,
            context.conversation_id,
        )
        try:
            ended = await self._processes.services.run_program(command, text.encode(), LIMITS)
        except OSError as error:
            return Formatted(name, trouble=f"it cannot be started: {error.strerror or error}")
        return _outcome(name, ended, text)

    async def _sandbox(self, context: ToolContext, *, allowed: bool) -> Sandbox | None:
        """Limits of a formatter: it never writes by itself; None where the system cannot enforce that."""
        if allowed:
            return replace(context.sandbox, required=False, path=PathOrder.AS_GIVEN)
        if await self._processes.enforcement() is not Enforcement.FULL:
            return None
        return Sandbox(SandboxMode.READ_ONLY, network=False)


async def _read(file: Path) -> Sequence[Formatter]:
    """Formatters of the settings; their module is loaded where there may be any."""
    text = await asyncio.to_thread(read_regular, file, MOST_SETTINGS)
    if text is None or b"format" not in text:
        return ()
    await load("phoenix_tui.config.language_servers")
    from phoenix_tui.config.language_servers import read_tables  # noqa: PLC0415 - seldom used

    return (await asyncio.to_thread(read_tables, file)).formatters


def _as_program(formatter: Formatter) -> LanguageServer:
    """The command in the form in which programs are looked for."""
    from tools.lsp.definitions import LanguageServer  # noqa: PLC0415 - with the first formatter

    return LanguageServer(name="formatter", command=formatter.command, languages={}, project_command=FOLDERS)


def _outcome(name: str, ended: ProgramResult, text: str) -> Formatted:
    if ended.timed_out:
        return Formatted(name, trouble=f"it did not end within {SECONDS:g} s")
    if ended.exit_code != 0:
        rows = [
            row for row in map(clean_line, ended.stderr.head.decode("utf-8", "replace").splitlines()) if row.strip()
        ]
        how = f"exit code {ended.exit_code}" if ended.exit_code is not None else f"signal {ended.signal}"
        reason = reason_words(ended.refused, "/sandbox changes it, and /lsp what runs in this folder")
        return Formatted(name, trouble=f"{how}: {rows[-1][:LONGEST_WORDS]}{reason}" if rows else how + reason)
    try:
        formatted = ended.stdout.head.decode()
    except UnicodeDecodeError:
        return Formatted(name, trouble="what it printed is no UTF-8 text")
    if ended.stdout.dropped or (text.strip() and not formatted.strip()) or "\0" in formatted:
        return Formatted(name, trouble="it printed no text, or too much; it must read stdin and print the whole file")
    return Formatted(name, formatted)
