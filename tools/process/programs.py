"""Helper programs by absolute path: a program planted in a repository is never one that Phoenix runs (SECURITY V5)."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SEARCH_PATHS = frozenset({
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
    "PYTHONPATH",
    "NODE_PATH",
    "PERL5LIB",
    "GEM_PATH",
    "GOPATH",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
})
"""Lists of folders that programs or libraries are loaded from; an empty entry means the working directory."""
HELPER_VARIABLES = frozenset({"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "PWD", "TMPDIR"})
"""All of the user's environment that a helper receives besides `PATH` and the locale: none of it names code."""
REPOSITORIES = (".git", ".hg", ".svn")
WORLD_WRITABLE = stat.S_IWOTH


def find_program(name: str, working_dir: Path | None = None) -> str:
    """The absolute path of a helper program; empty when no trusted folder of `PATH` has it.

    `working_dir` is a folder that is not trusted; without it the one Phoenix runs in.
    """
    for folder in trusted_folders(working_dir):
        found = _program(f"{folder}/{name}")
        if found and not _is_below(found, _untrusted(working_dir)):
            return f"{folder}/{name}"
    return ""


def trusted_folders(working_dir: Path | None = None) -> tuple[str, ...]:
    """Folders of `PATH` that a helper may come from, in order."""
    untrusted = _untrusted(working_dir)
    return tuple(folder for folder in trusted_entries() if not _is_below(os.path.realpath(folder), untrusted))


def absolute_entries(value: str) -> str:
    """A list of folders without its empty and relative entries."""
    return os.pathsep.join(entry for entry in value.split(os.pathsep) if entry.startswith("/"))


def outside_entries(value: str, working_dir: Path) -> str:
    """Remove folders in the repository of `working_dir` or of Phoenix's own folder from a list of folders."""
    untrusted = _untrusted(working_dir)
    kept = [entry for entry in absolute_entries(value).split(os.pathsep) if entry]
    return os.pathsep.join(entry for entry in kept if not _is_below(os.path.realpath(entry), untrusted))


def without_relative_entries(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with absolute folders alone in every search path; one that is left empty goes."""
    kept = {name: absolute_entries(value) if name in SEARCH_PATHS else value for name, value in environment.items()}
    return {name: value for name, value in kept.items() if value or name not in SEARCH_PATHS}


def helper_environment(environment: Mapping[str, str], working_dir: Path) -> dict[str, str]:
    """Environment of a helper of Phoenix: no variable that names a library, a module path or a setting of a program."""
    kept = {name: value for name, value in environment.items() if name in HELPER_VARIABLES or name.startswith("LC_")}
    return kept | {"PATH": os.pathsep.join(trusted_folders(working_dir)) or os.defpath}


@cache
def trusted_entries() -> tuple[str, ...]:
    """Entries of Phoenix's own `PATH` that exist and that no other user can write, resolved once."""
    entries = dict.fromkeys(absolute_entries(os.environ.get("PATH", os.defpath)).split(os.pathsep))
    temporary = tuple({os.path.realpath(path) for path in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")})
    return tuple(
        entry for entry in entries if entry and _is_private(entry) and not _is_below(os.path.realpath(entry), temporary)
    )


def _is_private(folder: str) -> bool:
    """True for a folder that, with all folders above it, is not open to everybody's writes."""
    path = Path(folder).resolve()
    try:
        modes = [place.stat().st_mode for place in (path, *path.parents)]
    except OSError:
        return False
    return stat.S_ISDIR(modes[0]) and not any(mode & WORLD_WRITABLE for mode in modes)


def _program(path: str) -> str:
    """The resolved path of an executable file, empty for anything else and for what everybody can write."""
    try:
        resolved = os.path.realpath(path, strict=True)
        mode = Path(resolved).stat().st_mode
    except OSError:
        return ""
    usable = stat.S_ISREG(mode) and not mode & WORLD_WRITABLE and os.access(resolved, os.X_OK)
    return resolved if usable else ""


def _untrusted(working_dir: Path | None) -> tuple[str, ...]:
    """The folder, the one Phoenix runs in and their repositories; never the root of the file system."""
    roots: list[Path] = []
    for folder in {Path(working_dir or Path.cwd()).resolve(), Path.cwd()}:
        roots.append(folder)
        roots += (parent for parent in folder.parents if any((parent / name).exists() for name in REPOSITORIES))
    return tuple(str(root) for root in roots if root != Path(root.anchor))


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
