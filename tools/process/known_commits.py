"""Commits that the references of a repository name, for the look at what commands left."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.files.own_files import read_regular
from tools.git.pointers import first_line
from tools.git.shape import HEAD
from tools.process.folder_index import Stamp, UnfinishedError, names_in, stamp_at

MOST_TIPS: Final = 100_000
"""Commits that references name; beyond them none counts as the user's own."""
MOST_REFERENCES: Final = 16 * 1024 * 1024
"""Bytes of one file of references."""
_NAME: Final = re.compile(rb"^[ \t\r]*([0-9a-f]{64}|[0-9a-f]{40})(?= |[\t\r]*$)", re.MULTILINE)


class References:
    """The references of one repository, of which a file is read again only where it changed."""

    def __init__(self) -> None:
        self.is_cut = False
        """True where there were more than are looked at: which commits a command made is not known then."""
        self._files: dict[Stamp, frozenset[str]] = {}

    def read(self, folder: Path, common: Path, below: Iterable[str], since: int, until: float) -> set[str]:
        """Commits that references name in the git folder, the common one and the folders `below` that; with `since`,
        only of files older than that. Raises UnfinishedError where the monotonic time `until` is over.
        """
        tips, known, now = set[str](), self._files, dict[Stamp, frozenset[str]]()
        files = (f"{path}/{name}" for path in below for name in names_in(path))
        for path in (*files, f"{common}/packed-refs", *(f"{folder}/{name}" for name in (HEAD, "ORIG_HEAD"))):
            if time.monotonic() > until:
                raise UnfinishedError("it took too long to read the references of git")
            stamp = stamp_at(path)
            if stamp is None or len(tips) > MOST_TIPS:
                continue
            names = now.get(stamp, known.get(stamp))
            names = now[stamp] = self._read_names(path) if names is None else names
            tips |= names if not since or stamp[3] < since else set()
        self._files = now
        self.is_cut = self.is_cut or len(tips) > MOST_TIPS
        return tips

    def _read_names(self, path: str) -> frozenset[str]:
        said = read_regular(Path(path), MOST_REFERENCES + 1, follow=False) or b""
        self.is_cut = self.is_cut or len(said) > MOST_REFERENCES
        return frozenset(found[1].decode("ascii") for found in _NAME.finditer(said))


def common_folder(folder: Path) -> Path:
    """The folder that holds the references for a git folder, resolved."""
    return (folder / first_line(folder / "commondir")).resolve()
