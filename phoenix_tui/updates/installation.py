"""The program that installed this Phoenix, and its command for a newer one."""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from msgspec import Struct

NAME: Final = "phoenix-tui"
FROM_FOLDER: Final = "Phoenix was installed from a folder or an address, not from a package index"
NOT_INSTALLED: Final = "Phoenix runs without being installed"
UNKNOWN: Final = "the program that installed Phoenix is not known"


class Installation(Struct, frozen=True):
    """Installer of Phoenix, or the reason why it has no command for a newer one."""

    installer: str = ""
    """uv tool, pipx, pip or uv pip."""
    command: str = ""
    why_not: str = ""

    @property
    def by_uv(self) -> bool:
        """True where uv installed it."""
        return self.installer.startswith("uv")


def find_installation(prefix: Path, executable: str = sys.executable) -> Installation:
    """Look at the metadata of the installed package, and at marks of its installer in the environment `prefix`."""
    try:
        found = distribution(NAME)
        installer, source = (found.read_text(name) or "" for name in ("INSTALLER", "direct_url.json"))
    except (PackageNotFoundError, OSError, ValueError):
        return Installation(why_not=NOT_INSTALLED)
    if source.strip():
        return Installation(why_not=FROM_FOLDER)
    if (prefix / "uv-receipt.toml").is_file():
        return Installation("uv tool", f"uv tool upgrade {NAME}")
    if (prefix / "pipx_metadata.json").is_file():
        return Installation("pipx", f"pipx upgrade {NAME}")
    match installer.strip().lower():
        case "pip":
            return Installation("pip", f"{shlex.quote(executable)} -m pip install --upgrade {NAME}")
        case "uv":
            return Installation("uv pip", f"uv pip install --python {shlex.quote(executable)} --upgrade {NAME}")
        case _:
            return Installation(why_not=UNKNOWN)
