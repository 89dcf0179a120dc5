"""The language servers of this installation: their code and their tables are read with the first edit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from phoenix_tui.cli.findings import Finding, Health
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.allowed_folders import FILE, AllowedFolders
from phoenix_tui.lifecycle.loading import load
from phoenix_tui.text.server_text import summary
from phoenix_tui.wiring.sandboxes import chosen_sandbox
from tools.clean import clean_line
from tools.contract import Sandbox
from tools.edit_checks import EditCheck
from tools.lsp.contract import CheckPlace, EditBegun, LanguageServerState, LanguageServerView
from tools.process.start import Processes

if TYPE_CHECKING:
    from tools.lsp.checker import LanguageServerChecks

TOPIC: Final = "lsp"


class LanguageServerBoard:
    """Implements `engine.ports.services.EditChecker` and `LanguageServers`."""

    def __init__(
        self, setup: Setup, environment: Mapping[str, str], processes: Processes, answers: AllowedFolders
    ) -> None:
        self._setup, self._environment, self._processes, self._answers = setup, environment, processes, answers
        self._checks: LanguageServerChecks | None = None
        self._opening = asyncio.Lock()
        self._notices: tuple[str, ...] = ()

    @property
    def notices(self) -> Sequence[str]:
        """Sentences about tables of config.toml that are left out; known once a file was edited."""
        return self._notices

    async def begin(self, place: CheckPlace, path: Path) -> EditBegun | None:
        """Keep a file as it is before an edit."""
        return await (await self._opened()).begin(place, path)

    async def finish(self, begun: EditBegun, shown: str) -> Sequence[EditCheck]:
        """Checks of the edit that was made."""
        return await (await self._opened()).finish(begun, shown)

    def late(self, conversation_id: str) -> Sequence[EditCheck]:
        """Checks of earlier edits."""
        return self._checks.late(conversation_id) if self._checks is not None else ()

    def closed(self, conversation_id: str) -> None:
        """Forget a conversation that closes."""
        if self._checks is not None:
            self._checks.closed(conversation_id)

    async def views(self, place: CheckPlace) -> Sequence[LanguageServerView]:
        """All servers, those that run first."""
        return await (await self._opened()).views(place)

    async def restart(self, place: CheckPlace, name: str) -> None:
        """End a server; its next use starts it again."""
        await (await self._opened()).restart(place, name)

    def is_allowed(self, folder: Path) -> bool:
        """True where the user lets servers run what the project in a folder contains."""
        return self._answers.is_allowed(folder)

    async def allow(self, folder: Path, *, allowed: bool) -> None:
        """Keep the user's answer about a folder."""
        await (await self._opened()).allow(folder, allowed=allowed)

    async def close(self) -> None:
        """End all servers."""
        if self._checks is not None:
            await self._checks.close()

    async def _opened(self) -> LanguageServerChecks:
        async with self._opening:
            if self._checks is None:
                for name in ("tools.lsp.checker", "phoenix_tui.config.language_servers"):
                    await load(name)
                self._checks = await asyncio.to_thread(self._open)
            return self._checks

    def _open(self) -> LanguageServerChecks:
        from phoenix_tui.config.language_servers import read_tables  # noqa: PLC0415 - with the first edit
        from tools.lsp.checker import CheckerSettings, LanguageServerChecks  # noqa: PLC0415 - the same

        tables = read_tables(self._setup.paths.config_file)
        self._notices = tables.notices
        processes = self._processes
        return LanguageServerChecks(
            CheckerSettings(tables.servers),
            lambda: processes.services,
            processes.enforcement,
            self._answers,
            self._environment,
        )


async def language_server_findings(setup: Setup, processes: Processes) -> list[Finding]:
    """Findings about the servers of this folder; none is started."""
    board = open_checks(setup, os.environ, processes, allowed_folders(setup))
    if board is None:
        return [Finding(TOPIC, Health.OK, "switched off (language_servers)")]
    sandbox, _ = chosen_sandbox(setup.settings, setup.cwd)
    views = await board.views(CheckPlace("", setup.cwd, Sandbox(sandbox)))
    allowed = "; they may run what this folder contains" if board.is_allowed(setup.cwd) else ""
    found = [Finding(TOPIC, Health.OK, f"{summary(views)}{allowed}")]
    found += [
        Finding(TOPIC, Health.NOTE, f"{clean_line(view.name)}: {view.text}") for view in views if _is_absent(view)
    ]
    return [*found, *(Finding(TOPIC, Health.NOTE, clean_line(notice)) for notice in board.notices)]


def _is_absent(view: LanguageServerView) -> bool:
    """True for a server that the user's settings name and that is not installed."""
    return view.state is LanguageServerState.MISSING and bool(view.text)


def allowed_folders(setup: Setup) -> AllowedFolders:
    """Folders in which language servers and formatters may run what the project contains."""
    return AllowedFolders(setup.paths.config / FILE, keeps=not setup.ephemeral)


def open_checks(
    setup: Setup, environment: Mapping[str, str], processes: Processes, answers: AllowedFolders
) -> LanguageServerBoard | None:
    """The language servers; None where they are switched off. It reads no file and starts nothing before an edit."""
    if not setup.settings.flag("language_servers"):
        return None
    return LanguageServerBoard(setup, environment, processes, answers)
