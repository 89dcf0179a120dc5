"""Choices of the user about servers that last: those that are off, and those of projects that may have secrets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from engine.ports.mcp import ServerDefinition
from tools.files.own_files import read_file, write_file
from tools.sandbox_mode import SandboxMode

MOST_BYTES: Final = 1024 * 1024
MOST: Final = 1_000
"""Choices of a kind that are kept; the oldest go first, and are asked about again."""


class _Choices(Struct, omit_defaults=True):
    """Content of the file: keys of definitions."""

    off: list[str] = field(default_factory=list[str])
    secrets: list[str] = field(default_factory=list[str])
    sandboxes: dict[str, SandboxMode] = field(default_factory=dict[str, SandboxMode])


class ServerChoices(Struct, frozen=True):
    """The file `mcp_choices.json`, 0600; its methods touch the disk and belong in a thread."""

    path: Path

    def read(self) -> tuple[frozenset[str], frozenset[str], Mapping[str, SandboxMode]]:
        """Keys of servers that are off, of those that may have their secrets, and of those with another sandbox."""
        found = self._read()
        return frozenset(found.off), frozenset(found.secrets), found.sandboxes

    def switch(self, definition: ServerDefinition, *, on: bool) -> None:
        """Switch a server off for good, or on again. Raises OSError."""
        found, key = self._read(), off_key(definition)
        found.off = [one for one in found.off if one != key]
        found.off += [] if on else [key]
        self._write(found)

    def choose_sandbox(self, definition: ServerDefinition, mode: SandboxMode | None) -> None:
        """Run a definition in another sandbox, as long as nothing of it changes. Raises OSError."""
        found, key = self._read(), sandbox_key(definition)
        found.sandboxes.pop(key, None)
        if mode is not None:
            found.sandboxes[key] = mode
        self._write(found)

    def allow_secrets(self, definition: ServerDefinition) -> None:
        """Let a definition have the secrets that it names, as long as nothing of it changes. Raises OSError."""
        found, key = self._read(), secrets_key(definition)
        found.secrets = [*(one for one in found.secrets if one != key), key]
        self._write(found)

    def _read(self) -> _Choices:
        try:
            return msgspec.json.decode(read_file(self.path, MOST_BYTES, follow=False), type=_Choices)
        except (OSError, msgspec.MsgspecError, RecursionError):
            return _Choices()  # damaged: what lasts is asked again

    def _write(self, choices: _Choices) -> None:
        newest = dict(list(choices.sandboxes.items())[-MOST:])
        write_file(self.path, msgspec.json.encode(_Choices(choices.off[-MOST:], choices.secrets[-MOST:], newest)))


def off_key(definition: ServerDefinition) -> str:
    """Key of a server by its place and name, however it is defined there."""
    return _hash(definition.source, definition.name)


def secrets_key(definition: ServerDefinition) -> str:
    """Key of a definition as it is written, with the secrets it names: another command or variable has another."""
    return _hash(definition.digest, *sorted(definition.secrets))


def sandbox_key(definition: ServerDefinition) -> str:
    """Key of a definition as it is written: another command has another."""
    return _hash("sandbox", definition.digest)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
