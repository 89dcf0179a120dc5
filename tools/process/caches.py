"""Caches of package managers and compilers: a sandboxed command writes to a copy of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

BELOW_HOME: Final[Mapping[str, tuple[str, ...]]] = {
    ".cache": (),
    ".npm": ("npm", "npx"),
    ".yarn": ("yarn",),
    ".bun/install/cache": ("bun", "bunx"),
    ".cargo/registry": ("cargo",),
    ".cargo/git": ("cargo",),
    "go/pkg": ("go",),
    ".gradle": ("gradle",),
    ".m2": ("mvn",),
    ".ivy2": ("sbt", "ivy"),
    ".sbt": ("sbt",),
    ".nuget": ("dotnet", "nuget"),
    ".local/share/pnpm": ("pnpm",),
    ".local/share/uv": ("uv", "uvx"),
    ".pnpm-store": ("pnpm",),
    ".bundle/cache": ("bundle",),
    ".mix": ("mix",),
    ".hex": ("mix",),
    ".deno": ("deno",),
    ".julia": ("julia",),
    ".stack": ("stack",),
    ".cabal/packages": ("cabal",),
    ".ccache": ("ccache",),
    ".electron-gyp": (),
    ".node-gyp": ("node-gyp",),
    ".terraform.d/plugin-cache": (),
    "Library/Caches": (),
}
"""Caches below the home folder, and the programs that make them by themselves; none makes those without a name."""
ALWAYS: Final = ".cache"
"""Made in every home folder: programs look for it first, and then for a place of their own."""
NAMED_BY: Final = {
    "XDG_CACHE_HOME": "",
    "UV_CACHE_DIR": "",
    "PIP_CACHE_DIR": "",
    "GOMODCACHE": "",
    "GRADLE_USER_HOME": "",
    "DENO_DIR": "",
    "CARGO_HOME": "registry",
    "GOPATH": "pkg",
}
"""Variables that move a cache, and which part of the folder they name it is."""


def cache_folders(environment: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Existing folders, resolved, none inside another one."""
    named = [*(home / name for name in BELOW_HOME), *_find_named_caches(environment)]
    present = {os.fspath(path) for path in named}
    existing = sorted({Path(os.path.realpath(path)) for path in present if os.path.isdir(path)})
    outer = [path for path in existing if not home.is_relative_to(path) and path != Path(path.anchor)]
    return tuple(path for path in outer if not any(other in path.parents for other in outer))


def _find_named_caches(environment: Mapping[str, str]) -> list[Path]:
    """Caches that variables move, without a step upwards."""
    values = ((environment.get(name, ""), part) for name, part in NAMED_BY.items())
    return [Path(value) / part for value, part in values if value.startswith("/") and ".." not in value]


def make_caches(environment: Mapping[str, str], home: Path) -> None:
    """Make the caches below the user's own `home` that variables name, or that installed programs would make at their
    first run, since the home folder is read-only to them. No link is followed; what cannot be made stays away.
    """
    if not _is_mine(home):  # of another user, for whom a folder of root would be closed
        return
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    stamps = tuple((entry, _read_change_time(entry)) for entry in entries if entry.startswith("/"))
    named = [os.path.relpath(path, home) for path in _find_named_caches(environment) if path.is_relative_to(home)]
    for name in (*_caches_of_installed(stamps), *named):
        if not os.path.lexists(home / name):
            with contextlib.suppress(OSError):
                _make(home, name)


@lru_cache(maxsize=4)
def _caches_of_installed(entries: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Caches of the programs in folders of `PATH`, each with the time of its last change."""
    here = [folder for folder, _ in entries]
    installed = [
        name
        for name, programs in BELOW_HOME.items()
        if any(os.access(f"{folder}/{program}", os.X_OK) for folder in here for program in programs)
    ]
    return (ALWAYS, *installed)


def _is_mine(home: Path) -> bool:
    try:
        return os.stat(home).st_uid == os.getuid()
    except OSError:
        return False


def _read_change_time(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _make(home: Path, name: str) -> None:
    """Make a folder below `home`, and those above it.

    Raises:
        OSError: it cannot be made, or a folder above it is a link.
    """
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in Path(name).parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=descriptor)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
    finally:
        os.close(descriptor)
