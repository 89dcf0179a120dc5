"""Interface of the trust in a folder's extension files for the screens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from phoenix_tui.config.project import Project
    from phoenix_tui.config.sources.report import SourceEntry, SourceReport


class TrustApi(Protocol):
    """The files that extend Phoenix in a folder, and the user's answer about them. Every method raises EngineError."""

    async def look(self, folder: Path) -> SourceReport:
        """Look at a folder as it is now, in a thread; the same report while nothing has changed."""
        ...

    async def text(self, report: SourceReport, entry: SourceEntry) -> str:
        """Text of one file, or its difference from what was accepted."""
        ...

    async def answer(self, report: SourceReport, *, trusted: bool) -> SourceReport:
        """Keep the user's answer about exactly the files of this report, and look again."""
        ...

    async def same_as(self, source: Path, folder: Path) -> Project | None:
        """Instructions and settings of `folder` that are byte for byte those of the trusted folder `source`, or None;
        None too where `folder` has an answer of its own.
        """
        ...

    async def accept(self, project: Project) -> None:
        """Trust exactly these instructions and settings, in their folder."""
        ...
