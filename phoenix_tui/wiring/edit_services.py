"""Formatters and language servers of the user, which follow an edit, and the folders in which servers may run what the
project contains; their tables are read at the first edit.
"""

from __future__ import annotations

import asyncio
import fnmatch
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.paths import FileStamp, lock_file, stamp
from phoenix_tui.features.language_server_board import LanguageServerBoard
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.lifecycle.threads import load
from phoenix_tui.text.server_text import summary
from phoenix_tui.wiring.start_facts import choose_sandbox
from tools.clean import clean_line
from tools.contract import Enforcement, PathOrder, Sandbox, SandboxMode, ToolContext
from tools.files.own_files import MOST_SETTINGS, read_regular, read_text, write_file
from tools.files.writing import Formatted
from tools.lsp.problems import CheckPlace, LanguageServerState
from tools.process.start import Processes
from tools.services import ProgramLimits, ProgramResult, ServiceCommand
from tools.shell_output import reason_words

if TYPE_CHECKING:
    from phoenix_tui.config.language_servers import Formatter
    from tools.lsp.definitions import LanguageServer


FILE = "language_servers.json"


class AllowedFolders(Struct, eq=False):
    """Implements `tools.lsp.checker.FolderAnswers` with a file of the user; an invalid file allows nothing."""

    path: Path
    keeps: bool = True
    """False: answers hold until Phoenix ends."""
    _own: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _read: tuple[FileStamp, dict[str, list[int]]] | None = None

    def is_allowed(self, folder: Path) -> bool:
        """True for a folder that is the one the user has allowed."""
        known = self._folders().get(str(folder)) if self.keeps else self._own.get(str(folder))
        return known is not None and known == _identity(folder)

    def answer(self, folder: Path, *, allowed: bool) -> None:
        """Keep an answer.

        Raises:
            OSError: it cannot be written.
        """
        if not self.keeps:
            self._change(self._own, folder, allowed=allowed)
            return
        with lock_file(self.path):
            self._read = None
            folders = dict(self._folders())
            self._change(folders, folder, allowed=allowed)
            write_file(self.path, json.dumps({"folders": folders}, indent=1, sort_keys=True) + "\n")
            self._read = None

    def _change(self, folders: dict[str, list[int]], folder: Path, *, allowed: bool) -> None:
        folders.pop(str(folder), None)
        if allowed:
            folders[str(folder)] = _identity(folder)

    def _folders(self) -> dict[str, list[int]]:
        now = stamp(self.path)
        if self._read is None or self._read[0] != now:
            self._read = (now, _parse_file(self.path))
        return self._read[1]


def _parse_file(path: Path) -> dict[str, list[int]]:
    try:
        document: object = json.loads(read_text(path, MOST_SETTINGS))
    except (OSError, ValueError, RecursionError):
        return {}
    folders = cast("dict[str, object]", document).get("folders") if isinstance(document, dict) else None
    if not isinstance(folders, dict):
        return {}
    found = cast("dict[str, object]", folders)
    return {name: cast("list[int]", value) for name, value in found.items() if isinstance(value, list)}


def _identity(folder: Path) -> list[int]:
    try:
        status = folder.stat()
    except OSError:
        return []
    return [status.st_dev, status.st_ino]


SECONDS: Final = 10.0
OUTPUT: Final = 16 * 1024 * 1024
"""Bytes; no larger file can be edited."""
LIMITS: Final = ProgramLimits(SECONDS, OUTPUT)
FOLDERS: Final = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Folders of a project whose programs may run where the user has allowed it."""
LONGEST_WORDS: Final = 200


class UserFormatters:
    """Implements `tools.files.writing.TextFormatter`; the tables are read with an edit after they changed."""

    def __init__(
        self, file: Path, environment: Mapping[str, str], processes: Processes, answers: AllowedFolders
    ) -> None:
        self._file, self._environment, self._processes, self._answers = file, environment, processes, answers
        self._known: tuple[FileStamp, Sequence[Formatter]] | None = None

    async def format(self, path: Path, text: str, context: ToolContext) -> Formatted | None:
        """Format a text with the first formatter whose pattern fits the name."""
        now = stamp(self._file)
        if self._known is None or self._known[0] != now:
            self._known = (now, await _read(self._file) if now is not None else ())
        for formatter in self._known[1]:
            if fnmatch.fnmatchcase(path.name, formatter.pattern):
                return await self._format_text(formatter, path, text, context)
        return None

    async def _format_text(self, formatter: Formatter, path: Path, text: str, context: ToolContext) -> Formatted:
        from tools.lsp.definitions import program_of, server_environment  # noqa: PLC0415 - with the first formatter

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


TOPIC: Final = "lsp"


async def language_server_findings(setup: Setup, processes: Processes) -> list[Finding]:
    """Findings about the servers of this folder; none is started."""
    board = open_checks(setup, os.environ, processes, read_allowed_folders(setup))
    if board is None:
        return [Finding(TOPIC, Health.OK, "switched off (language_servers)")]
    sandbox, _ = choose_sandbox(setup.settings, setup.cwd)
    views = await board.views(CheckPlace("", setup.cwd, Sandbox(sandbox)))
    allowed = "; they may run what this folder contains" if board.is_allowed(setup.cwd) else ""
    found = [Finding(TOPIC, Health.OK, f"{summary(views)}{allowed}")]
    found += [
        Finding(TOPIC, Health.NOTE, f"{clean_line(view.name)}: {view.text}")
        for view in views
        if view.state is LanguageServerState.MISSING and bool(view.text)
    ]
    return [*found, *(Finding(TOPIC, Health.NOTE, clean_line(notice)) for notice in board.notices)]


def read_allowed_folders(setup: Setup) -> AllowedFolders:
    """Folders in which language servers and formatters may run what the project contains."""
    return AllowedFolders(setup.paths.config / FILE, keeps=not setup.ephemeral)


def open_checks(
    setup: Setup, environment: Mapping[str, str], processes: Processes, answers: AllowedFolders
) -> LanguageServerBoard | None:
    """The language servers; None where they are switched off. It reads no file and starts nothing before an edit."""
    if not setup.settings.flag("language_servers"):
        return None
    return LanguageServerBoard(setup.paths.config_file, environment, processes, answers)
