"""What people, models and Phoenix itself say: prompts, thoughts, notices, errors, the end of a stopped turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.machine.messages import ImageBlock
from phoenix_tui.markdown.lines import MARGIN, PLAIN, QUIET, Line, Look, Span, Tone
from phoenix_tui.markdown.wrap import ellipsize, wrap
from phoenix_tui.widgets.blocks.rows import column, count_text, duration_text, quiet_note, row
from tools.clean import clean, clean_line

BAR: Final = Span("┃ ", Look(Tone.YOU))
LONG_PROMPT: Final = 40
"""Rows above which a prompt is folded."""
SHOWN_OF_LONG: Final = 12
_BOLD: Final = Look(bold=True)
_BAD: Final = Look(Tone.BAD)


class Stopped(Struct, frozen=True):
    """A turn the user ended: after how long, how many processes went with it, whether text was lost."""

    seconds: float
    processes: int
    unsaved_text: bool


def prompt_lines(text: str, images: Sequence[ImageBlock], width: int, *, is_open: bool, action: str) -> list[Line]:
    """A person's message: a bar in their colour, the first line bold, images as chips."""
    lines: list[Line] = []
    for number, source in enumerate(clean(text).strip("\n").split("\n") if text else ()):
        look = PLAIN if number else _BOLD
        for spans, joint in wrap((Span(source.expandtabs(4), look),), column(width) - MARGIN):
            lines.append(Line((BAR, *spans), joint))
    if len(lines) > LONG_PROMPT and not is_open:
        hidden = len(lines) - SHOWN_OF_LONG
        del lines[SHOWN_OF_LONG:]
        lines.append(Line((BAR, Span(f"… +{count_text(hidden, 'line')}", QUIET, action))))
    if images:
        chips = " ".join(f"[image {n}: {image.width}×{image.height}]" for n, image in enumerate(images, 1))
        for spans, joint in wrap((Span(chips, QUIET),), column(width) - MARGIN):
            lines.append(Line((BAR, *spans), joint))
    return lines


def sticky_prompt(text: str, width: int) -> tuple[Span, ...]:
    """The first line of a prompt as the row that stays on top of its answer."""
    first = clean_line(text.strip().split("\n", 1)[0])
    return (BAR, Span(ellipsize(first, max(column(width) - MARGIN, 1)), _BOLD))


def thinking_lines(text: str, width: int, *, is_open: bool, action: str, live: bool = False) -> list[Line]:
    """Reasoning: one quiet row with its length, folded; opened, all of it in quiet."""
    words = count_text(len(text.split()), "word")
    thought = clean(text).strip()
    newest = clean_line(thought.rsplit("\n", 1)[-1]) if live else ""
    label = f"thinking · {words}" + (f" · {newest}" if newest else "")
    lines = [row(Span("⋯", QUIET), "", label if live else f"thought · {words}", "", width, action=action, look=QUIET)]
    if is_open:
        look = QUIET._replace(italic=True)
        for source in thought.split("\n"):
            for spans, joint in wrap((Span(source, look),), column(width) - MARGIN - 2):
                lines.append(Line((Span("  "), Span("  "), *spans), joint, MARGIN + 2))
    return lines


def notice_lines(text: str, width: int) -> list[Line]:
    """A quiet row of the audit trail."""
    return quiet_note("·", clean(text).strip(), width)


def report_lines(title: str, text: str, width: int, *, is_open: bool, action: str) -> list[Line]:
    """A result that came from elsewhere (a sub-agent, a background task): one row, folded."""
    cleaned = clean(text).strip()
    first, _, rest = cleaned.partition("\n")
    right = f"+{count_text(rest.count(chr(10)) + 1, 'line')}" if rest and not is_open else ""
    lines = [row(Span("↳", QUIET), title, first, right, width, action=action, look=QUIET)]
    return lines + quiet_note(" ", cleaned, width) if is_open else lines


def stopped_lines(stopped: Stopped, width: int) -> list[Line]:
    """How a turn ended that the user stopped."""
    parts = [f"stopped by you after {duration_text(stopped.seconds)}"]
    if stopped.processes:
        parts.append("1 process ended" if stopped.processes == 1 else f"{stopped.processes} processes ended")
    if stopped.unsaved_text:
        parts.append("text not saved, /copy copies it")
    return quiet_note("■", " · ".join(parts), width)


def error_lines(message: str, retryable: bool, width: int) -> list[Line]:
    """A failed run: the cause, and the key that helps."""
    lines = quiet_note("✗", clean(message).strip() or "The run failed.", width, look=_BAD)
    hint = "Enter tries again · a new message goes on from here" if retryable else "A new message goes on from here"
    return [*lines, *quiet_note(" ", hint, width)]


def draft_lines(name: str, characters: int, width: int) -> list[Line]:
    """A tool call that is still being written."""
    size = f"{characters:,} characters" if characters else ""
    return [row(Span("▸", Look(Tone.WORK)), clean_line(name), "writing the call…", size, width)]


def welcome_lines(folder: str, model: str, mode: str, width: int) -> list[Line]:
    """An empty conversation: where it is, who answers, three things one can type."""
    indent = Span(" " * MARGIN)
    room = column(width) - MARGIN
    lines = [
        Line((indent, Span(ellipsize(clean_line(folder), room), _BOLD))),
        Line((indent, Span(ellipsize(f"{clean_line(model)} · {mode}", room), QUIET))),
        Line(()),
    ]
    for key, meaning in (("@", "names a file"), ("/", "lists the commands"), ("!", "runs a shell command here")):
        lines.append(Line((indent, Span(key, Look(Tone.YOU)), Span(f"  {meaning}", QUIET))))
    return lines
