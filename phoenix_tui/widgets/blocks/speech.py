"""Speech of people, models and Phoenix itself: prompts, thoughts, notices, errors, the end of a stopped turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Final

from msgspec import Struct

from engine.machine.messages import Block, ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.machine.states import Errored
from engine.machine.texts import STOPPED, SUMMARIZED, without_keys
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.markdown.code import plain_rows
from phoenix_tui.markdown.lines import MARGIN, PLAIN, QUIET, Span, StyledLine, TextStyle, TextTone, ellipsize, wrap
from phoenix_tui.text.agent_text import is_init_request
from phoenix_tui.widgets.blocks.rows import column, draw_row, duration_text, quiet_note, shorten
from tools.clean import LONGEST_LINE, clean, clean_line
from tools.wording import pluralize

BAR: Final = Span("┃ ", TextStyle(TextTone.YOU))
LONG_PROMPT: Final = 40
"""Rows above which a prompt is folded."""
SHOWN_OF_LONG: Final = 8
END_OF_LONG: Final = 4
"""Last rows of a folded prompt: words behind a paste are the question, as often as those before it."""
LONGEST_FOLDED: Final = SHOWN_OF_LONG + END_OF_LONG
LOOKED_AT: Final = 64_000
"""Characters of a folded prompt that are looked at: its first rows have fewer."""
LOOKED_AT_END: Final = 4_000
"""Characters in which its last rows are looked for."""
LONGEST_CHIP: Final = 120
"""Characters of a chip; a path may have thousands."""
MOST_COUNTED: Final = 200_000
"""Characters of a text whose words are counted."""
MOST_BARE: Final = 16_000
"""Characters of a block that is shown as text alone."""
UNDRAWABLE: Final = "This message cannot be drawn; its text follows."
SILENT: Final = "(silent)"
"""Row of a reply by which the model says nothing on purpose."""
STOP_NOTICES: Final = tuple(STOPPED.values())
"""Prefixes of the stored row of a stop (engine/machine/texts.py)."""
_BOLD: Final = TextStyle(bold=True)
_BAD: Final = TextStyle(TextTone.BAD)


class StopNotice(Struct, frozen=True):
    """A turn the user ended: after how long, how many processes went with it, whether text was lost."""

    seconds: float
    processes: int
    unsaved_text: bool


class SpokenMessage(Struct, frozen=True):
    """A message of the user: the words, and their attachments."""

    text: str
    images: tuple[ImageBlock, ...] = ()
    attached: tuple[TextBlock, ...] = ()
    marks: tuple[str, ...] = ()
    """Remarks on it."""


def prompt_rows(said: SpokenMessage, width: int, *, is_open: bool, action: str) -> Iterator[StyledLine]:
    """A person's message: a bar in their colour, the first line bold, images and attached files as chips."""
    room = column(width) - MARGIN
    yield from _prompt_text(said.text.strip("\n"), room, is_open=is_open, action=action)
    chips = [f"[image {n}: {image.width}×{image.height}]" for n, image in enumerate(said.images, 1)]
    names = (clean_line(block.attached[:LONGEST_LINE]) for block in said.attached)
    chips += [f"[{ellipsize(name, LONGEST_CHIP)}]" for name in names]
    if chips:
        for spans, joint in wrap((Span(" ".join(chips), QUIET, action if said.attached else ""),), room):
            yield StyledLine((BAR, *spans), joint)
    for mark in said.marks:
        for spans, joint in wrap((Span(f"⚠ {ellipsize(mark, LONGEST_CHIP)}", QUIET),), room):
            yield StyledLine((BAR, *spans), joint)
    for block in said.attached if is_open else ():
        for _, shown, joint in plain_rows(block.text, room):
            yield StyledLine((BAR, Span(shown, QUIET)), joint)


def _prompt_text(text: str, room: int, *, is_open: bool, action: str) -> Iterator[StyledLine]:
    if not text:
        return
    if is_open:
        yield from (_prompt_row(*row) for row in plain_rows(text, room))
        return
    rows = plain_rows(text[:LOOKED_AT], room)
    head = list(islice(rows, LONG_PROMPT + 1))
    head += takewhile(lambda row: row[0] == head[-1][0], islice(rows, 2))
    if len(head) <= LONG_PROMPT and len(text) <= LOOKED_AT:
        yield from (_prompt_row(*row) for row in head)
        return
    yield from (_prompt_row(*row) for row in head[:SHOWN_OF_LONG])
    end = deque(plain_rows(text[-LOOKED_AT_END:], room), maxlen=END_OF_LONG)
    hidden = len(head) - SHOWN_OF_LONG + text.count("\n") - head[-1][0] - len(end)
    yield StyledLine((BAR, Span(f"… +{pluralize(max(hidden, 1), 'line')}", QUIET, action)))
    for number, (_, shown, joint) in enumerate(end):
        yield _prompt_row(1, shown, joint if number else None)


def _prompt_row(number: int, shown: str, joint: str | None) -> StyledLine:
    return StyledLine((BAR, Span(shown, PLAIN if number else _BOLD)), joint)


def sticky_prompt(text: str, width: int) -> tuple[Span, ...]:
    """The first line of a prompt as the row that stays on top of its answer."""
    first = "/init" if is_init_request(text) else clean_line(text.strip()[:LONGEST_LINE].split("\n", 1)[0])
    return (BAR, Span(ellipsize(first, max(column(width) - MARGIN, 1)), _BOLD))


def thinking_row(words: str, width: int, action: str, *, newest: str = "", live: bool = False) -> StyledLine:
    """Reasoning as one quiet row: the number of words, and while it continues the newest line."""
    label = f"thinking · {words}" + (f" · {newest}" if newest else "")
    return draw_row(Span("⋯", QUIET), "", label if live else f"thought · {words}", "", width, action=action, look=QUIET)


def thinking_rows(text: str, width: int) -> Iterator[StyledLine]:
    look = QUIET._replace(italic=True)
    for _, shown, joint in plain_rows(text.strip(), column(width) - MARGIN - 2):
        yield StyledLine((Span("  "), Span("  "), Span(shown, look)), joint, MARGIN + 2)


def length_of(text: str) -> str:
    """Length of a text, in words; of a huge one in characters, since counting its words would take too long."""
    return pluralize(len(text), "character") if len(text) > MOST_COUNTED else pluralize(len(text.split()), "word")


def notice_rows(text: str, width: int) -> Iterator[StyledLine]:
    """A quiet row of the audit trail; that of a stop has its own sign."""
    words = text.strip()
    return quiet_note("■", _as_remark(words), width) if is_stop_notice(words) else quiet_note("·", words, width)


def summary_rows(text: str, width: int, *, is_open: bool, action: str) -> Iterator[StyledLine]:
    """A compaction: one row about it, and the summary itself below it, folded."""
    first, _, rest = text.strip().partition("\n")
    summary = rest.strip()
    right = "" if is_open else f"+{pluralize(summary.count(chr(10)) + 1, 'line')}"
    yield draw_row(Span("·", QUIET), "", clean_line(first[:LONGEST_LINE]), right, width, action=action, look=QUIET)
    if is_open:
        yield from quiet_note(" ", summary, width)


def bare_rows(author: str, blocks: Sequence[Block], width: int) -> Iterator[StyledLine]:
    yield StyledLine((Span(f"{author}:", QUIET),))
    for block in blocks:
        match block:
            case TextBlock(text=text) | ThinkingBlock(text=text):
                shown = text
            case ToolUseBlock(name=name, input_json=arguments):
                shown = f"{name} {arguments}"
            case ToolResultBlock(content=content):
                shown = "\n".join(one.text for one in content if isinstance(one, TextBlock))
            case ImageBlock(width=columns, height=rows):
                shown = f"[image {columns}×{rows}]"
        for _, line, joint in plain_rows(shorten(shown, MOST_BARE), max(width - MARGIN, 1)):
            yield StyledLine((Span(" " * MARGIN), Span(line)), joint)


def is_summary_notice(text: str) -> bool:
    return text.startswith(SUMMARIZED) and "\n" in text


def is_stop_notice(text: str) -> bool:
    return text.startswith(STOP_NOTICES)


def _as_remark(words: str) -> str:
    return words[:1].lower() + words[1:]


def report_rows(
    title: str, text: str, width: int, *, is_open: bool, action: str, words: str = ""
) -> Iterator[StyledLine]:
    """Text from another source, such as a sub-agent: one row, folded; `words` replace its first line."""
    stripped = text.strip()
    first, _, rest = stripped.partition("\n")
    first = clean_line(words) or clean_line(first[:LONGEST_LINE])
    right = f"+{pluralize(rest.count(chr(10)) + 1, 'line')}" if rest and not is_open else ""
    yield draw_row(Span("↳", QUIET), title, first, right, width, action=action, look=QUIET)
    if is_open:
        yield from quiet_note(" ", stripped, width)


def draw_stop(stopped: StopNotice, width: int, stored: str = "", *, copies: bool = True) -> list[StyledLine]:
    """End of a turn that the user stopped: the stored words if there are any, and the outcome for its text, which
    /copy `copies`.
    """
    parts = [_as_remark(clean_line(stored))] if stored else [f"stopped by you after {duration_text(stopped.seconds)}"]
    if stopped.processes and not stored:
        parts.append(f"{pluralize(stopped.processes, 'process', 'processes')} ended")
    if stopped.unsaved_text:
        parts += ["this text is not kept", *(["/copy"] if copies else [])]
    return list(quiet_note("■", " · ".join(parts), width))


def error_lines(error: Errored, width: int) -> list[StyledLine]:
    """A failed run: the cause, and the keys that help."""
    cause = quiet_note("✗", clean(without_keys(error.message)).strip() or "The run failed.", width, look=_BAD)
    again = ("send", "retries")
    if error.kind == "auth":
        fix = hint("/key sets another key", "/model changes the model", f"then {hint(again)}")
    elif error.retryable:
        fix = hint(again, "a message continues")
    else:
        fix = hint("/model changes the model", again, "a message continues")
    return [*cause, *quiet_note(" ", hint(fix, ("stop", "dismisses")), width)]


def draft_lines(name: str, characters: int, width: int) -> list[StyledLine]:
    size = f"{characters:,} characters" if characters else ""
    return [draw_row(Span("▸", TextStyle(TextTone.WORK)), clean_line(name), "preparing the call…", size, width)]


def welcome_lines(folder: str, model: str, mode: str, width: int) -> list[StyledLine]:
    """An empty conversation: its folder, its model, three things one can type."""
    indent = Span(" " * MARGIN)
    room = column(width) - MARGIN
    lines = [
        StyledLine((indent, Span(ellipsize(clean_line(folder), room), _BOLD))),
        StyledLine((indent, Span(ellipsize(f"{clean_line(model)} · {mode}", room), QUIET))),
        StyledLine(()),
    ]
    for key, meaning in (("@", "names a file"), ("/", "lists the commands"), ("!", "runs a shell command here")):
        lines.append(StyledLine((indent, Span(key, TextStyle(TextTone.YOU)), Span(f"  {meaning}", QUIET))))
    return lines
