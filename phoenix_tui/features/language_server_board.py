"""The language servers of folders: checks of edits, and what a front end shows and switches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from phoenix_tui.lifecycle.threads import load
from tools.displays import EditCheck
from tools.lsp.problems import CheckPlace, EditBegun, LanguageServerView
from tools.process.start import Processes

if TYPE_CHECKING:
    from tools.lsp.checker import FolderAnswers, LanguageServerChecks


class LanguageServerBoard:
    """Opens the checks of language servers with the first edit; implements `engine.ports.services.EditChecker`."""

    def __init__(
        self, tables: Path, environment: Mapping[str, str], processes: Processes, answers: FolderAnswers
    ) -> None:
        self._tables, self._environment, self._processes, self._answers = tables, environment, processes, answers
        self._checks: LanguageServerChecks | None = None
        self._opening = asyncio.Lock()
        self._notices: tuple[str, ...] = ()

    @property
    def notices(self) -> Sequence[str]:
        """Sentences about tables of config.toml that are left out; known once a file was edited."""
        return self._notices

    async def begin(self, place: CheckPlace, path: Path) -> EditBegun | None:
        """Keep a file as it is before an edit."""
        return await (await self._open_checks()).begin(place, path)

    async def finish(self, begun: EditBegun, shown: str) -> Sequence[EditCheck]:
        """Checks of the edit that was made."""
        return await (await self._open_checks()).finish(begun, shown)

    def late(self, conversation_id: str) -> Sequence[EditCheck]:
        """Checks of earlier edits."""
        return self._checks.late(conversation_id) if self._checks is not None else ()

    def forget_conversation(self, conversation_id: str) -> None:
        """Forget a conversation that closes."""
        if self._checks is not None:
            self._checks.forget_conversation(conversation_id)

    async def views(self, place: CheckPlace) -> Sequence[LanguageServerView]:
        """All servers that are known or configured, those that run first."""
        return await (await self._open_checks()).views(place)

    async def restart(self, place: CheckPlace, name: str) -> None:
        """End a server; its next use starts it again, however often it has ended."""
        await (await self._open_checks()).restart(place, name)

    def is_allowed(self, folder: Path) -> bool:
        """True where the user lets servers run what the project in a folder contains."""
        return self._answers.is_allowed(folder)

    async def allow(self, folder: Path, *, allowed: bool) -> None:
        """Keep the user's answer about a folder; servers of it end, and start again by it. Raises OSError."""
        await (await self._open_checks()).allow(folder, allowed=allowed)

    async def close(self) -> None:
        """End all servers."""
        if self._checks is not None:
            await self._checks.close()

    async def _open_checks(self) -> LanguageServerChecks:
        async with self._opening:
            if self._checks is None:
                for name in ("tools.lsp.checker", "phoenix_tui.config.language_servers"):
                    await load(name)
                self._checks = await asyncio.to_thread(self._open)
            return self._checks

    def _open(self) -> LanguageServerChecks:
        from phoenix_tui.config.language_servers import read_tables  # noqa: PLC0415 - with the first edit
        from tools.lsp.checker import CheckerSettings, LanguageServerChecks  # noqa: PLC0415 - the same

        tables = read_tables(self._tables)
        self._notices = tables.notices
        processes = self._processes
        return LanguageServerChecks(
            CheckerSettings(tables.servers),
            lambda: processes.services,
            processes.enforcement,
            self._answers,
            self._environment,
        )
