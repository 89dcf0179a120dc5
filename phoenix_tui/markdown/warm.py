"""Loading of code for the first Markdown answer, in a thread after the first frame (docs/decisions/textual.md).

The patterns of a language are not: they are 2 MB, and loaded when code in it comes into sight.
"""

from __future__ import annotations


def warm() -> None:
    """Load the parser; call it from a thread."""
    from phoenix_tui.markdown.stream import MarkdownStream  # noqa: PLC0415 - the point of this function

    MarkdownStream(80).begin("*a*")
