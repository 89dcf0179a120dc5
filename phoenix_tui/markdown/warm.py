"""What the first Markdown answer needs, loaded ahead of it in a thread after the first frame (SPIKE 4)."""

from __future__ import annotations

WARMED = ("python", "bash", "json")
"""Languages whose patterns are compiled ahead; each takes some 10 ms the first time."""


def warm() -> None:
    """Load the parser and the lexers of the commonest languages; call it from a thread."""
    from phoenix_tui.markdown.code import load  # noqa: PLC0415 - the point of this function
    from phoenix_tui.markdown.stream import markdown_lines  # noqa: PLC0415 - the point of this function

    markdown_lines("*a*", 80)
    for language in WARMED:
        load(language)
