"""The instructions an agent gets from files: the user's own AGENTS.md, then the project's where it is trusted."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from phoenix_tui.config.project import FILE_LIMIT, Project, find_project
from phoenix_tui.config.trust import Trust, TrustFile
from tools.files.own_files import read_file


class Instructions(Struct, frozen=True):
    """Reader of the instructions of a working directory; reads the files each time, so that withdrawn trust applies at
    once.
    """

    own: Path
    trust: TrustFile

    def __call__(self, folder: Path) -> str:
        """The text for `folder`, empty when there is none."""
        try:
            own = read_file(self.own, FILE_LIMIT).decode("utf-8", "replace").strip()
        except OSError:
            own = ""
        project, trusted = Project(folder), False
        if self.trust.may_be_trusted(folder):
            project = find_project(folder)
            trusted = self.trust.status(project).trust is Trust.GIVEN
        return "\n\n".join(part for part in (own, project.instructions() if trusted else "") if part)
