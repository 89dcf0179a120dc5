"""Signatures of thinking that a server refused as another model's, kept on disk: each costs one request, once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.files.own_files import read_regular, write_file

FILE: Final = "refused-thinking"
"""Name of the file in the folder of states."""
MOST: Final = 4_000
"""Signatures that are kept; the newest ones."""
DIGITS: Final = 16


class ForeignThinking:
    """The refused signatures; without a path they are forgotten with the process."""

    def __init__(self, path: Path | None = None) -> None:
        self.signatures: set[str] = set()
        """Refused signatures of the conversations that were asked about in this process."""
        self._path = path
        self._known: dict[str, None] | None = None
        """Digests, oldest first: a signature has kilobytes, and the digest tells nothing about the thinking."""
        self._seen: set[str] = set()

    def recall(self, signatures: Iterable[str]) -> None:
        """Recognize those among the signatures of a request that were refused before, in any process."""
        new = set(signatures) - self._seen
        if new:
            self._seen |= new
            known = self._read()
            self.signatures |= {one for one in new if _digest(one) in known}

    def refuse(self, signatures: Iterable[str]) -> bool:
        """Remember refused signatures; False where all of them are known. A file that cannot be written is no error."""
        new = set(signatures) - self.signatures
        if not new:
            return False
        self.signatures |= new
        self._known = None  # another process may have written meanwhile
        known = self._read() | dict.fromkeys(map(_digest, sorted(new)))
        self._known = dict.fromkeys(list(known)[-MOST:])
        if self._path is not None:
            with suppress(OSError):
                write_file(self._path, "\n".join(self._known) + "\n")
        return True

    def _read(self) -> dict[str, None]:
        if self._known is None:
            content = read_regular(self._path, MOST * (DIGITS + 1)) if self._path is not None else None
            lines = (content or b"").decode("ascii", "replace").split()
            self._known = dict.fromkeys(line for line in lines if len(line) == DIGITS)
        return self._known


def _digest(signature: str) -> str:
    return hashlib.sha256(signature.encode("utf-8", "replace")).hexdigest()[:DIGITS]
