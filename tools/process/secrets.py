"""Places of keys: below the home folder, and those named by variables of the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tools.files.protected import looks_secret, secret_paths

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
    named = set(map(os.fspath, _named(environment, home)))
    named |= set(_looking_secret(home))
    found = {Path(os.path.realpath(path)) for path in named if os.path.exists(path)}  # noqa: PTH110 - a fifth of the time
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


def _named(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
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
