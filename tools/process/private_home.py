"""The part of the home folder that sandboxed commands do not see: documents and other projects."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.process.environment import SEARCH_PATHS

MOST_ENTRIES: Final = 1_000
"""Entries of a home folder that are covered one by one; a larger one is covered as a whole."""
_TOOL_VARIABLES: Final = """
VIRTUAL_ENV CONDA_PREFIX CONDA_EXE PYENV_ROOT CARGO_HOME RUSTUP_HOME GOROOT GOPATH GOBIN NVM_DIR PNPM_HOME
VOLTA_HOME FNM_DIR BUN_INSTALL DENO_DIR JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME SDKMAN_DIR
ANDROID_HOME ANDROID_SDK_ROOT RBENV_ROOT GEM_HOME RVM_PATH DOTNET_ROOT OPAMROOT CUDA_HOME CUDA_PATH
POETRY_HOME PIPX_HOME ASDF_DIR MISE_DATA_DIR HOMEBREW_PREFIX
"""
TOOL_VARIABLES: Final = tuple(_TOOL_VARIABLES.split())
"""Variables that name the folder of a tool."""


def private_entries(home: Path, needed: tuple[Path, ...]) -> tuple[Path, ...]:
    """Files and folders directly below `home` without a leading dot, except for ancestors of a `needed` path.

    Dot folders hold settings and tools; those of them with keys are hidden by name (`tools.files.protected`).
    """
    found: list[Path] = []
    try:
        with os.scandir(home) as entries:
            for entry in entries:
                if len(found) > MOST_ENTRIES:
                    break
                path = Path(entry.path)
                if not entry.name.startswith(".") and not entry.is_symlink() and not _holds(path, needed):
                    found.append(path)
    except OSError:
        return ()
    return tuple(sorted(found))


def hidden_entries(home: Path) -> tuple[Path, ...]:
    """Files and folders directly below `home` with a leading dot, which stay in sight where the rest is covered."""
    with os.scandir(home) as entries:
        return tuple(Path(one.path) for one in entries if one.name.startswith(".") and not one.is_symlink())


def tool_folders(environment: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Existing folders below `home` that search paths and variables of tools name, resolved."""
    named = {os.path.realpath(value) for value in {*_named(environment)} if value.startswith("/")}
    below = f"{home}/"
    return tuple(sorted(Path(path) for path in named if path.startswith(below) and Path(path).exists()))


def _named(environment: Mapping[str, str]) -> Iterator[str]:
    yield from (environment.get(name, "") for name in TOOL_VARIABLES)
    for name in SEARCH_PATHS:
        for entry in filter(None, environment.get(name, "").split(os.pathsep)):
            yield entry
            if Path(entry).name == "bin":  # its program needs the libraries beside it
                yield str(Path(entry).parent)


def _holds(folder: Path, paths: tuple[Path, ...]) -> bool:
    return any(path == folder or folder in path.parents for path in paths)
