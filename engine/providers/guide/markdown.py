"""Small pieces of Markdown that stay whole whatever is put in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_LINE = 300
"""Characters of a shown line."""

_LANGUAGES = {
    ".py": "python", ".js": "javascript", ".ts": "typescript", ".tsx": "tsx", ".rs": "rust", ".go": "go", ".c": "c",
    ".h": "c", ".cpp": "cpp", ".java": "java", ".rb": "ruby", ".sh": "bash", ".toml": "toml", ".json": "json",
    ".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".html": "html", ".css": "css", ".sql": "sql",
}  # fmt: skip


def language_of(path: str) -> str:
    """The word after the fence for this file, empty when unknown."""
    dot = path.rfind(".")
    return _LANGUAGES.get(path[dot:].casefold(), "") if dot >= 0 else ""


def fenced(lines: Sequence[str], language: str = "") -> str:
    """A code block no content can close early."""
    shown = [line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…" for line in lines]
    body = "\n".join(shown)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def code(text: str) -> str:
    """Inline code on one line."""
    flat = " ".join(text.split())
    shown = flat if len(flat) <= LONGEST_LINE else flat[:LONGEST_LINE] + "…"
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
