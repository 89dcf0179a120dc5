"""Tokens of servers that the user signed in to: one file, 0600, or another store; only the helper understands them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw, Struct, field

from engine.ports.mcp import ServerDefinition, ServerOrigin
from tools.files.locked_file import hold_locked_file
from tools.files.own_files import close_to_others, make_folder, read_file, write_file
from tools.mcp_host.protocol import NOTHING, AuthUrl

MOST_BYTES: Final = 4 * 1024 * 1024
LONGEST: Final = 64 * 1024
"""Bytes of one server's tokens and registration."""


class TokenStore(Protocol):
    """Store of the tokens of all servers; its methods belong in a thread."""

    def get(self, key: str) -> Raw:
        """Content stored under a key; null without any. Raises OSError."""
        ...

    def put(self, key: str, content: Raw) -> None:
        """Store tokens beside those of other servers, or delete them for null. Raises OSError."""
        ...


class CredentialsFile(Struct, eq=False):
    """The file `mcp_tokens.json`; its methods touch the disk and belong in a thread."""

    path: Path

    def get(self, key: str) -> Raw:
        """Content stored under a key; null without any, or where the file is damaged."""
        found = self._read().get(key)
        return Raw(json.dumps(found).encode()) if found is not None else NOTHING

    def put(self, key: str, content: Raw) -> None:
        """Store tokens beside those of other servers, or delete them for null.

        Raises:
            OSError: they cannot be written, or are too long.
        """
        make_folder(self.path.parent)
        # Several servers, and several processes, refresh their tokens at the same time.
        with hold_locked_file(self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR):
            entries = self._read()
            entries.pop(key, None)
            if bytes(content) != bytes(NOTHING):
                entries[key] = msgspec.json.decode(content)
            encoded = msgspec.json.encode(entries)
            if len(bytes(content)) > LONGEST or len(encoded) > MOST_BYTES:
                raise OSError(0, "the tokens are too long")
            write_file(self.path, encoded)

    def _read(self) -> dict[str, Any]:
        try:
            with contextlib.suppress(OSError):
                close_to_others(self.path)
            return msgspec.json.decode(read_file(self.path, MOST_BYTES, follow=False), type=dict[str, Any])
        except (OSError, msgspec.MsgspecError, RecursionError):
            return {}


def check_content(content: bytes) -> Raw:
    """Stored content that is JSON within the limit. Raises ValueError."""
    if len(content) > LONGEST:
        raise ValueError("too long")
    msgspec.json.decode(content)
    return Raw(content)


def credentials_key(definition: ServerDefinition, root: Path) -> str:
    """Key of a server's tokens: its address, and for one of a project that project, which gets no others' tokens."""
    place = str(root) if definition.origin is ServerOrigin.PROJECT else ""
    parts = "\0".join((definition.origin.value, place, definition.url))
    return f"mcp:{hashlib.sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()}"


class ServerAccess(Struct, eq=False):
    """Reads and writes what a sign-in gave; of no use to a stdio server."""

    tokens: TokenStore
    definition: ServerDefinition
    root: Path
    note: Callable[[str], None]
    """Adds a line to the log of the server."""
    stored: Raw = NOTHING
    """Tokens as they were read before the connection; null: none."""
    signing: bool = False
    """True from the beginning of a sign-in until the server is connected or it has failed."""
    order: asyncio.Lock = field(default_factory=asyncio.Lock)
    coming: asyncio.Future[AuthUrl | str] | None = None
    """Address of the sign-in that begins, or the reason why there is none."""

    async def load(self) -> None:
        """Read the tokens for the next connection."""
        if self.definition.transport == "stdio":
            return
        try:
            async with self.order:
                self.stored = await asyncio.to_thread(self.tokens.get, credentials_key(self.definition, self.root))
        except OSError as error:
            self.stored = NOTHING
            self.note(f"error: its tokens cannot be read: {error.strerror or error}")

    async def store(self, content: Raw) -> None:
        """Keep new tokens, null deletes them; where they cannot be written, another sign-in is needed later."""
        try:
            async with self.order:
                await asyncio.to_thread(self.tokens.put, credentials_key(self.definition, self.root), content)
        except OSError as error:
            self.note(f"error: its tokens cannot be stored: {error.strerror or error}")

    def take(self, found: AuthUrl | str) -> None:
        """Take the address of a sign-in, or the reason why there is none."""
        if self.coming is not None and not self.coming.done():
            self.coming.set_result(found)
