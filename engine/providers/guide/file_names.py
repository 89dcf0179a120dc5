"""File names inside sentences: quoted, with spaces, several at once."""

from __future__ import annotations

import re

_QUOTES = re.compile(r"['\"`]{0,8}")
_WELL_KNOWN = frozenset({"readme", "makefile", "dockerfile", "license", "changelog", "contributing", "gemfile"})
_AFTERTHOUGHT = re.compile(
    r"(?:,? (?:and|then) (?:tell|explain|show|say|describe|summari[sz]e)\b.*| to me| for me| please| file)$",
    re.IGNORECASE | re.DOTALL,
)
_SEPARATOR = re.compile(r",\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
_QUOTED_ITEM = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`")


def unquote(text: str) -> str:
    """`text` without surrounding space and one layer of quotes."""
    stripped = text.strip()
    opening = _QUOTES.match(stripped)
    for size in range(len(opening[0]) if opening else 0, 0, -1):
        if len(stripped) >= 2 * size and stripped.endswith(stripped[:size]):
            return stripped[size:-size]
    return stripped


def named(text: str) -> str:
    """The name of a file without quotes, and without the `@` that attaches it to a message."""
    return unquote(text.strip().removeprefix("@"))


def is_path(text: str) -> bool:
    """True when this could name a file or a glob rather than be a phrase."""
    if not text or "\n" in text or "\0" in text:
        return False
    return bool(re.search(r"\.\w+$|[/\\*?~]|^\.", text)) or text.casefold() in _WELL_KNOWN


def split_paths(text: str) -> tuple[str, ...]:
    """The files that `a.py, "my notes.txt" and c/d` names; empty when a part looks like no file."""
    rest = _AFTERTHOUGHT.sub("", text.strip())
    quoted = tuple(found.group(1) or found.group(2) or found.group(3) for found in _QUOTED_ITEM.finditer(rest))
    if quoted and not _QUOTED_ITEM.sub("", rest).replace("and", "").strip(" ,@"):
        return quoted
    parts = tuple(named(part) for part in _SEPARATOR.split(rest) if part.strip())
    return parts if parts and all(is_path(part) for part in parts) else ()
