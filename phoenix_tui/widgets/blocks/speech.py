"""What people, models and Phoenix itself say: prompts, thoughts, notices, errors, the end of a stopped turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.machine.messages import ImageBlock
from engine.machine.states import Errored
from engine.machine.texts import SUMMARIZED, without_keys
from phoenix_tui.keys_in_force import hint
from phoenix_tui.markdown.lines import MARGIN, PLAIN, QUIET, Line, Look, Span, Tone
from phoenix_tui.markdown.wrap import ellipsize, wrap
from phoenix_tui.widgets.blocks.rows import column, duration_text, quiet_note, row
from tools.clean import clean, clean_line
from tools.wording import counted

BAR: Final = Span("┃ ", Look(Tone.YOU))
LONG_PROMPT: Final = 40
"""Rows above which a prompt is folded."""
SHOWN_OF_LONG: Final = 12
STOP_NOTICES: Final = ("Stopped by you", "Stopped at the time limit")
"""How the stored row of a stop begins (engine/machine/texts.py)."""
_BOLD: Final = Look(bold=True)
_BAD: Final = Look(Tone.BAD)


class Stopped(Struct, frozen=True):
    """A turn the user ended: after how long, how many processes went with it, whether text was lost."""

    seconds: float
    processes: int
    unsaved_text: bool


def prompt_lines(text: str, images: Sequence[ImageBlock], width: int, *, is_open: bool, action: str) -> list[Line]:
    """A person's message: a bar in their colour, the first line bold, images as chips."""
    lines, beyond = _prompt_rows(clean(text).strip("\n"), column(width) - MARGIN, None if is_open else LONG_PROMPT)
    if len(lines) > LONG_PROMPT and not is_open:
        hidden = len(lines) - SHOWN_OF_LONG + beyond
        del lines[SHOWN_OF_LONG:]
        lines.append(Line((BAR, Span(f"… +{counted(hidden, 'line')}", QUIET, action))))
    if images:
        chips = " ".join(f"[image {n}: {image.width}×{image.height}]" for n, image in enumerate(images, 1))
        for spans, joint in wrap((Span(chips, QUIET),), column(width) - MARGIN):
            lines.append(Line((BAR, *spans), joint))
    return lines


def _prompt_rows(text: str, room: int, most: int | None) -> tuple[list[Line], int]:
    """Wrapped rows, and how many lines are left once there are more than `most`: megabytes are never all wrapped."""
    lines: list[Line] = []
    sources = text.split("\n") if text else []
    for number, source in enumerate(sources):
        if most is not None and len(lines) > most:
            return lines, len(sources) - number
        shown = source if most is None else source[: (most + 2) * room]
        for spans, joint in wrap((Span(shown.expandtabs(4), PLAIN if number else _BOLD),), room):
            lines.append(Line((BAR, *spans), joint))
    return lines, 0


def sticky_prompt(text: str, width: int) -> tuple[Span, ...]:
    """The first line of a prompt as the row that stays on top of its answer."""
    first = clean_line(text.strip().split("\n", 1)[0])
    return (BAR, Span(ellipsize(first, max(column(width) - MARGIN, 1)), _BOLD))


def thinking_lines(text: str, width: int, *, is_open: bool, action: str, live: bool = False) -> list[Line]:
    """Reasoning: one quiet row with its length, folded; opened, all of it in quiet."""
    words = counted(len(text.split()), "word")
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
    """A quiet row of the audit trail; that of a stop has its own sign."""
    words = clean(text).strip()
    return quiet_note("■", _as_remark(words), width) if is_stop_notice(words) else quiet_note("·", words, width)


def summary_lines(text: str, width: int, *, is_open: bool, action: str) -> list[Line]:
    """A compaction: one row with what it did, and the summary itself below it, folded."""
    first, _, rest = clean(text).strip().partition("\n")
    summary = rest.strip()
    right = "" if is_open else f"+{counted(summary.count(chr(10)) + 1, 'line')}"
    lines = [row(Span("·", QUIET), "", first, right, width, action=action, look=QUIET)]
    return lines + quiet_note(" ", summary, width) if is_open else lines


def is_summary_notice(text: str) -> bool:
    """Whether a stored notice carries the summary of older messages."""
    return text.startswith(SUMMARIZED) and "\n" in text


def is_stop_notice(text: str) -> bool:
    """Whether a stored notice says how a turn was stopped."""
    return text.startswith(STOP_NOTICES)


def _as_remark(words: str) -> str:
    return words[:1].lower() + words[1:]


def report_lines(title: str, text: str, width: int, *, is_open: bool, action: str, words: str = "") -> list[Line]:
    """What came from elsewhere, such as a sub-agent: one row, folded; `words` stand for its first line."""
    cleaned = clean(text).strip()
    first, _, rest = cleaned.partition("\n")
    first = clean_line(words) or first
    right = f"+{counted(rest.count(chr(10)) + 1, 'line')}" if rest and not is_open else ""
    lines = [row(Span("↳", QUIET), title, first, right, width, action=action, look=QUIET)]
    return lines + quiet_note(" ", cleaned, width) if is_open else lines


def stopped_lines(stopped: Stopped, width: int, stored: str = "") -> list[Line]:
    """How a turn ended that the user stopped: the stored words where they are there, and what became of its text."""
    parts = [_as_remark(clean_line(stored))] if stored else [f"stopped by you after {duration_text(stopped.seconds)}"]
    if stopped.processes and not stored:
        parts.append(f"{counted(stopped.processes, 'process', 'processes')} ended")
    if stopped.unsaved_text:
        parts.append("text not saved, /copy copies it")
    return quiet_note("■", " · ".join(parts), width)


def error_lines(error: Errored, width: int) -> list[Line]:
    """A failed run: the cause, and the keys that help."""
    lines = quiet_note("✗", clean(without_keys(error.message)).strip() or "The run failed.", width, look=_BAD)
    again = ("send", "tries again")
    if error.kind == "auth":
        fix = hint("/key keeps another key", "/model chooses another model", f"then {hint(again)}")
    elif error.retryable:
        fix = hint(again, "a message goes on from here")
    else:
        fix = hint("/model chooses another model", again, "a message goes on from here")
    return [*lines, *quiet_note(" ", hint(fix, ("stop", "puts this away")), width)]


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
