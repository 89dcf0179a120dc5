"""Markdown as rows of a panel: laid out as in the transcript, code without colours."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from textual.content import Content

from phoenix_tui.text.labels import Tone

if TYPE_CHECKING:
    from phoenix_tui.markdown.lines import TextStyle

MOST_WORK: Final = 24_000
"""Work (`heft`) of laying a text out, at most about 40 ms: some are laid out ten times a second while they arrive."""
TONES: Final = ("", *(tone.value for tone in (Tone.QUIET, Tone.YOU, Tone.WORK, Tone.NEEDS_YOU, Tone.GOOD, Tone.BAD)))
"""Tones by their number in `markdown.lines`; those of code stay plain here."""


@lru_cache(maxsize=8)
def markdown_rows(text: str, width: int, most_work: int = MOST_WORK) -> tuple[Content, ...]:
    """The rows of a text, or of its end where laying out all of it is more work (`heft`) than `most_work`; 0: any."""
    # The parser loads with the first use.
    from phoenix_tui.markdown.layout import last_piece  # noqa: PLC0415 - as said
    from phoenix_tui.markdown.stream import MarkdownStream  # noqa: PLC0415 - as said

    stream = MarkdownStream(width)
    stream.feed(last_piece(text, most_work) if most_work else text)
    stream.finish()
    return tuple(Content.assemble(*((span.text, _style(span.look)) for span in line.spans)) for line in stream.lines)


def _style(look: TextStyle) -> str:
    traits = [name for name in ("bold", "italic", "strike", "underline") if getattr(look, name)]
    tone = TONES[look.tone] if look.tone < len(TONES) else ""
    return " ".join([*traits, tone, "on $surface" if look.surface else ""]).strip()
