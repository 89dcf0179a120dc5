"""Places that sandboxed commands do not see: keys, documents and other projects, sockets of the machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tools.files.links import real_path
from tools.files.protected import looks_secret, secret_paths
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


def list_hidden_entries(home: Path) -> tuple[Path, ...]:
    """Files and folders directly below `home` with a leading dot, which stay in sight where the rest is covered."""
    with os.scandir(home) as entries:
        return tuple(Path(one.path) for one in entries if one.name.startswith(".") and not one.is_symlink())


def tool_folders(environment: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Existing folders below `home` that search paths and variables of tools name, resolved."""
    named = {real_path(value) for value in {*_list_named(environment)} if value.startswith("/")}
    below = f"{home}/"
    return tuple(sorted(Path(path) for path in named if path.startswith(below) and Path(path).exists()))


def _list_named(environment: Mapping[str, str]) -> Iterator[str]:
    yield from (environment.get(name, "") for name in TOOL_VARIABLES)
    for name in SEARCH_PATHS:
        for entry in filter(None, environment.get(name, "").split(os.pathsep)):
            yield entry
            if Path(entry).name == "bin":  # its program needs the libraries beside it
                yield str(Path(entry).parent)


def _holds(folder: Path, paths: tuple[Path, ...]) -> bool:
    return any(path == folder or folder in path.parents for path in paths)


NAMED_BY: Final = (
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "DOCKER_CONFIG",
    "KUBECONFIG",
    "GNUPGHOME",
    "GH_CONFIG_DIR",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PGPASSFILE",
    "PASSWORD_STORE_DIR",
    "XAUTHORITY",
    "ICEAUTHORITY",
    "HISTFILE",
    "SOPS_AGE_KEY_FILE",
)
CARGO_FILES: Final = ("credentials", "credentials.toml")


def key_places(environment: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Existing files and folders with keys, resolved; never an ancestor of the home folder."""
    # Read anew for each command, 0.5 ms: remembered places could be replaced, or created, in between.
    named = set(map(os.fspath, _key_places(environment, home)))
    named |= set(_looking_secret(home))
    found = {Path(real_path(path)) for path in named if os.path.exists(path)}
    return tuple(sorted(path for path in found if not home.is_relative_to(path)))


def _looking_secret(home: Path) -> Iterator[str]:
    """Files at the top of the home folder whose names are those of keys: `~/.env`."""
    try:
        with os.scandir(home) as entries:
            yield from (entry.path for entry in entries if looks_secret(entry.name))
    except OSError:
        return


@cache
def _usual(home: Path) -> tuple[Path, ...]:
    return secret_paths(home)


def _key_places(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    usual_places = _usual(home)
    yield from usual_places
    moved = environment.get("XDG_CONFIG_HOME", "")
    if moved.startswith("/"):
        usual = home / ".config"
        yield from (Path(moved) / path.relative_to(usual) for path in usual_places if path.is_relative_to(usual))
    for name in NAMED_BY:
        yield from (Path(entry) for entry in environment.get(name, "").split(":") if entry.startswith("/"))
    cargo = environment.get("CARGO_HOME", "")
    if cargo.startswith("/"):
        yield from (Path(cargo) / name for name in CARGO_FILES)


TABLE: Final = Path("/proc/net/unix")
FOLDERS: Final = ("/run", "/var/run")
KEPT: Final = (
    "/run/systemd/resolve/resolv.conf",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/NetworkManager/resolv.conf",
    "/run/connman/resolv.conf",
    "/run/current-system",
    "/run/opengl-driver",
)
"""Needed entries of the folders of sockets that are no sockets: names of servers, and the programs of NixOS."""


def socket_folders() -> tuple[Path, ...]:
    """Folders that programs at work keep their sockets in."""
    return tuple(Path(folder) for folder in FOLDERS if Path(folder).is_dir() and not Path(folder).is_symlink())


def list_sockets() -> tuple[Path, ...]:
    """Paths of all listening sockets that are named by an absolute path."""
    try:
        lines = TABLE.read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    named = {fields[7] for line in lines if len(fields := line.split(maxsplit=7)) == 8}
    return tuple(Path(name) for name in sorted(named) if name.startswith("/") and _is_socket(name))


def _is_socket(name: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(name).st_mode) and real_path(name) == name
    except OSError:
        return False
