"""The trust in a folder's files that extend Phoenix, and the user's answer about them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from engine.executor.requests import EngineError
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources
from phoenix_tui.config.sources.report import SourceEntry, SourceReport, report_of, text_of
from phoenix_tui.config.trust import Project, Trust, TrustFile, find_project
from tools.clean import reveal_name

MOST_KEPT: Final = 20
"""Reports in memory; there is one per folder in view."""


class TrustBoard(Struct, eq=False):
    """Looks in a thread, and keeps the report while nothing has changed. Every method raises EngineError."""

    sources: ProjectSources
    _kept: dict[Path, tuple[TrustedSources, SourceReport]] = field(
        default_factory=dict[Path, tuple[TrustedSources, SourceReport]]
    )

    async def look(self, folder: Path) -> SourceReport:
        """Look at a folder as it is now, in a thread; the same report while nothing has changed."""
        return await asyncio.to_thread(self._look, folder)

    async def text(self, report: SourceReport, entry: SourceEntry) -> str:
        """Text of one file, or its difference from what was accepted."""
        return await asyncio.to_thread(text_of, self.sources, report, entry)

    async def answer(self, report: SourceReport, *, trusted: bool) -> SourceReport:
        """Keep the user's answer about exactly the files of this report, and look again."""
        return await asyncio.to_thread(self._answer, report, trusted)

    async def same_as(self, source: Path, folder: Path) -> Project | None:
        """Instructions and settings of `folder` that are byte for byte those of the trusted folder `source`, or None;
        None too where `folder` has an answer of its own.
        """
        return await asyncio.to_thread(_same_as, self.sources.trust, source, folder)

    async def accept(self, project: Project) -> None:
        """Trust exactly these instructions and settings, in their folder."""
        try:
            await asyncio.to_thread(self.sources.trust.answer, project, trusted=True)
        except OSError as error:
            raise EngineError(f"The answer cannot be kept: {error.strerror or error}.") from error

    def _answer(self, report: SourceReport, trusted: bool) -> SourceReport:
        try:
            self.sources.answer(report.folder, trusted=trusted, shown=report.shown)
        except OSError as error:
            raise EngineError(f"The answer cannot be kept: {error.strerror or error}.") from error
        return self._look(report.folder)

    def _look(self, folder: Path) -> SourceReport:
        try:
            real = folder.resolve()
            found = self.sources.look(real)
        except OSError as error:
            raise EngineError(f"{reveal_name(folder)} cannot be looked at: {error.strerror or error}.") from error
        kept = self._kept.get(real)
        if kept is None or kept[0] is not found:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[real] = kept = (found, report_of(found, real))
        return kept[1]


def _same_as(trust: TrustFile, source: Path, folder: Path) -> Project | None:
    try:
        ours, theirs = find_project(source), find_project(folder)
    except OSError:
        return None
    known = trust.status(ours).trust is Trust.GIVEN and trust.status(theirs).trust is Trust.UNKNOWN
    return theirs if known and _digests(ours) == _digests(theirs) else None


def _digests(project: Project) -> dict[str, str]:
    """Digests of the files of a project, by their paths from its folder."""
    return {os.path.relpath(file.path, project.folder): file.digest for file in project.files}
