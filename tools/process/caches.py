"""Caches of package managers and compilers: a sandboxed command writes to a copy of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

BELOW_HOME: Final = (
    ".cache",
    ".npm",
    ".yarn",
    ".bun/install/cache",
    ".cargo/registry",
    ".cargo/git",
    "go/pkg",
    ".gradle",
    ".m2",
    ".ivy2",
    ".sbt",
    ".nuget",
    ".local/share/pnpm",
    ".local/share/uv",
    ".pnpm-store",
    ".bundle/cache",
    ".mix",
    ".hex",
    ".deno",
    ".julia",
    ".stack",
    ".cabal/packages",
    ".ccache",
    ".electron-gyp",
    ".node-gyp",
    ".terraform.d/plugin-cache",
    "Library/Caches",
)
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
    named = [home / name for name in BELOW_HOME]
    for name, part in NAMED_BY.items():
        value = environment.get(name, "")
        if value.startswith("/"):
            named.append(Path(value) / part)
    present = {os.fspath(path) for path in named}
    existing = sorted({Path(os.path.realpath(path)) for path in present if os.path.isdir(path)})  # noqa: PTH112 - quicker
    outer = [path for path in existing if not home.is_relative_to(path) and path != Path(path.anchor)]
    return tuple(path for path in outer if not any(other in path.parents for other in outer))
