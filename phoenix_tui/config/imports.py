"""`@path` imports of instruction files: their names in a text, and the files that they may lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.files.content import is_binary
from tools.files.own_files import read_regular
from tools.files.protected import begins_as_key, is_secret, looks_secret

DEPTH: Final = 5
"""Files from an instruction file to the last one that is read."""
MOST_IMPORTS: Final = 50
"""Imported files of one folder."""
SCANNED: Final = 40_000
"""Characters of a file that are searched for imports: as many as are sent."""
_NAME: Final = re.compile(r"(?<!\S)@((?:\\ |[^\s`<>\"'()\[\]]){1,1000})")
_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_CODE: Final = re.compile(r"`[^`]*`")
_FENCES: Final = ("```", "~~~")
_FILES: Final = frozenset({".md", ".mdx", ".markdown", ".txt", ".rst", ".json", ".yaml", ".yml", ".toml"})
_FOREIGN: Final = frozenset({".git", ".hg", ".svn", ".jj"})


def import_names(text: str) -> Iterator[str]:
    """Names behind an `@` at the start of a word, outside code; a blank in a name has a backslash before it."""
    fence = ""
    may_be_code, in_list = True, False
    for line in text[:SCANNED].removeprefix("\ufeff").splitlines():
        bare = line.lstrip()
        is_code = may_be_code and not in_list and line.startswith(("    ", "\t")) and bool(bare)
        start = bare[:3]
        if start in _FENCES and not is_code and (not fence or start == fence):
            fence = "" if fence else start
        elif not fence and not is_code:
            for found in _NAME.finditer(_CODE.sub(" ", line)):
                if name := found.group(1).rstrip(".,;:!?").replace("\\ ", " "):
                    yield name
        may_be_code = is_code or not bare
        if bare and line[0] not in " \t":
            in_list = bool(_ITEM.match(line))
        elif bare and not is_code and _ITEM.match(bare):
            in_list = True


def is_file_name(name: str) -> bool:
    """True for a name that is meant as a file rather than a person, a package or a decorator."""
    return Path(name).suffix.lower() in _FILES


def import_path(name: str, importer: Path) -> Path | None:
    """The path of an import, relative to the file that names it; None for a name that no file can have."""
    try:
        path = Path(name).expanduser() if name.startswith("~/") else importer.parent / name
    except RuntimeError:  # there is no home folder
        return None
    return path if "\0" not in name else None


def read_import(path: Path, root: Path, limit: int) -> tuple[Path, bytes] | None:
    """The real path and the first `limit` bytes of an imported text file below `root`.

    None where links lead out of `root`, and for places of keys, version control, binary and irregular files.
    """
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    if not real.is_relative_to(root) or _FOREIGN & set(real.relative_to(root).parts):
        return None
    if looks_secret(str(real)) or is_secret(real, Path.home()):
        return None
    content = read_regular(real, limit, follow=False)
    return None if content is None or is_binary(content) or begins_as_key(content) else (real, content)
