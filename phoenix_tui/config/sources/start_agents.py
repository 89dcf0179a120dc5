"""Agents in `.claude/agents` before there are services: for `--profile NAME` and the setting `profile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from engine.ports.profiles import Profile
from phoenix_tui.config.sources.agent_files import AgentReader
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.sources.source_trust import TrustedSources, sort_sources
from phoenix_tui.config.trust import TrustFile


class StartAgents(Struct, frozen=True):
    """Agents of the user and of a folder that is trusted; no answer is written here."""

    users: Path
    """Folder of the user's files."""
    home: Path
    trust: TrustFile
    trusts: bool = False
    """True where the command line trusts the folder's files as they are."""
    counts: Callable[[Path], bool] | None = None

    def of(self, folder: Path) -> Sequence[Profile]:
        """Agents of a folder as the files are now; none where it cannot be looked at."""
        sources = ProjectSources(self.users, self.home, self.trust, keeps_answers=False, counts=self.counts)
        try:
            return AgentReader().read(self._found(sources, folder)).profiles
        except OSError:
            return ()

    def _found(self, sources: ProjectSources, folder: Path) -> TrustedSources:
        found = sources.look(folder)
        if not self.trusts:
            return found
        project = sources.project(folder)
        digests = {str(file.path): file.digest for file in project.files}
        return sort_sources(project, sources.users(folder), digests, trusted=True)
