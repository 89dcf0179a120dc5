"""Language servers as they are known or configured: program, files, settings."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

PLAIN_TEXT: Final = "plaintext"


class LanguageServer(Struct, frozen=True, kw_only=True):
    """One language server; of two with the same role that know a file, the first one that is installed checks it."""

    name: str
    command: tuple[str, ...]
    """Program and arguments; the program is looked for in `PATH` unless it is an absolute path."""
    languages: Mapping[str, str]
    """Language id of the protocol by the pattern of file names, such as `*.py`."""
    role: str = "types"
    runs_project: bool = False
    """True where it runs what a project contains: build scripts, plug-ins, a compiler of the project's own."""
    project_command: tuple[str, ...] = ()
    """Folders of a project that may have its program, below the root."""
    roots: tuple[str, ...] = ()
    """Files that mark a root below the working folder."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Value of `initializationOptions`."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Answers to its questions about settings."""
    passed_over: tuple[str, ...] = ()
    """Codes of problems that do not count."""
    unresolved: tuple[str, ...] = ()
    """Codes of problems that come of packages in a virtual environment of the project that the server may not use."""
    pulls: bool = True
    """False where what it answers to a question about problems is not all that it finds."""
    timeout: float = 60.0
    """Seconds for its start, and for one check that goes on in the background."""
    is_enabled: bool = True
    is_users: bool = False
    """True where the user's config.toml names it: that it is missing is said then."""

    def language_of(self, name: str) -> str:
        """Language id of a file by its name; empty where it knows none."""
        return next((found for pattern, found in self.languages.items() if _matches(name, pattern)), "")


def _matches(name: str, pattern: str) -> bool:
    """True for a name that fits; patterns of Phoenix are `*.SUFFIX` or a whole name."""
    if pattern.startswith("*.") and not set(pattern[1:]) & set("*?["):
        return name.endswith(pattern[1:])
    return fnmatch.fnmatchcase(name, pattern)
