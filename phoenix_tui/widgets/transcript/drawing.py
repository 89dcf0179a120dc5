"""Messages and the live answer as parts: the blocks of each part, their lines, and the strips of those once shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from textual.strip import Strip

from engine.machine.messages import (
    Block,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    find_attachments,
)
from engine.machine.texts import without_keys
from engine.records import StoredMessage
from phoenix_tui.images.source import box_of
from phoenix_tui.markdown.code import LongText
from phoenix_tui.markdown.lines import BLANK, MARGIN, Span, StyledLine
from phoenix_tui.text.agent_text import is_init_request, marks, read_submission
from phoenix_tui.widgets.blocks import speech
from phoenix_tui.widgets.blocks.rows import ToolView
from phoenix_tui.widgets.blocks.tool_row import completion_words, focus_lines, reads_line, tool_block
from phoenix_tui.widgets.transcript.model import LiveReply, TranscriptModel, reads_of, run_of, shows_nothing, text_of
from tools.wording import pluralize

if TYPE_CHECKING:
    from phoenix_tui.images.source import Box
    from phoenix_tui.markdown.code import CodeBlock
    from phoenix_tui.markdown.stream import MarkdownStream
    from phoenix_tui.widgets.blocks.diff import DiffColours


class DrawnKind(StrEnum):
    """Kind of a part; parts of kind `TOOL` follow each other without a blank row."""

    PROMPT = "prompt"
    ANSWER = "answer"
    THINKING = "thinking"
    TOOL = "tool"
    NOTE = "note"
    IMAGE = "image"


IN_RUNS: Final = frozenset({DrawnKind.TOOL, DrawnKind.NOTE})
"""Kinds whose rows belong together."""
STOPPED: Final = "answer:stopped:"
"""Beginning of the key of a text that was stopped; message and place among the stopped ones below it follow."""
ENDS: Final = frozenset({"stopped", "error"})
"""Keys of the parts about the end of a turn."""


class DrawnPart(Struct):
    """One block of a message, drawn for one width."""

    key: str
    """Names the part within the conversation: fold states and redrawing go by it."""
    kind: DrawnKind
    lines: list[StyledLine]
    foldable: bool = False
    dim: bool = False
    """Painted in quiet throughout: text that was not saved."""
    stream: MarkdownStream | LongText | None = None
    """Source of its lines, while code in it is still to be coloured or text to come."""
    colours: DiffColours | None = None
    """Uncoloured rest of a diff."""
    codes: Sequence[CodeBlock] = ()
    """The pieces of code in it, top down."""
    picture: Box | None = None
    """The stored image it shows, a row of cells for each of its lines."""
    gap: int = 0
    """Blank rows above it."""
    strips: list[Strip | None] = field(default_factory=list[Strip | None])

    @property
    def plain(self) -> MarkdownStream | LongText | DiffColours | None:
        """Owner of code in it that is still to be coloured."""
        painting = self.stream or self.colours
        return painting if painting is not None and painting.jobs else None

    def height(self) -> int:
        return len(self.lines) + self.gap


class Drawn(Struct):
    """One message, drawn."""

    parts: list[DrawnPart]

    @property
    def height(self) -> int:
        return sum(part.height() for part in self.parts)

    def locate(self, row: int) -> tuple[DrawnPart, int] | None:
        for part in self.parts:
            height = part.height()
            if row < height:
                return part, row - part.gap
            row -= height
        return None

    def line(self, row: int) -> StyledLine:
        found = self.locate(row)
        if found is None or found[1] < 0 or found[1] >= len(found[0].lines):
            return BLANK
        return found[0].lines[found[1]]

    def top_of(self, key: str) -> int | None:
        row = 0
        for part in self.parts:
            if part.key == key:
                return row + part.gap
            row += part.height()
        return None


def locate_rows(rows: Iterable[tuple[int, int, Drawn | None]]) -> Iterator[tuple[DrawnPart, int] | None]:
    """`locate` for rows in their order, which passes over each part once."""
    before: Drawn | None = None
    number = top = 0
    for _, row, drawn in rows:
        if drawn is None:
            yield None
            continue
        if drawn is not before:
            before, number, top = drawn, 0, 0
        while number < len(drawn.parts) and row >= top + drawn.parts[number].height():
            top += drawn.parts[number].height()
            number += 1
        part = drawn.parts[number] if number < len(drawn.parts) else None
        yield None if part is None else (part, row - top - part.gap)


def with_gaps(parts: list[DrawnPart], before: DrawnKind | None) -> Drawn:
    """Parts with blank rows between them, none in a run of tool rows or of notes and above images.

    `before` is the kind above. The end of a turn is set apart.
    """
    for part in parts:
        goes_on = before is part.kind and part.kind in IN_RUNS and part.key not in ENDS
        part.gap = 0 if before is None or part.kind is DrawnKind.IMAGE or goes_on else 1
        before = part.kind
    return Drawn(parts)


_INDENT = Span(" " * MARGIN)
_AUTHORS = {Origin.HUMAN: "you", Origin.LLM: "answer", Origin.TOOL: "result"}
_REPORTS = {Origin.COMPLETION: "sub-agent ended", Origin.SUBAGENT: "task"}


def _long_part(
    key: str,
    kind: DrawnKind,
    rows: Iterable[StyledLine],
    *,
    foldable: bool = False,
    head: list[StyledLine] | None = None,
) -> DrawnPart:
    """A part of `head` and endless rows: those beyond the first are laid out while it is visible."""
    text = LongText([] if head is None else head, rows)
    return DrawnPart(key, kind, text.lines, foldable, stream=text if text.waiting else None)


class LiveAnswer:
    """One part fed with the pieces of one reply; another reply starts another part."""

    def __init__(self) -> None:
        self._part: DrawnPart | None = None
        self._stream: MarkdownStream | None = None
        """Source of its lines."""
        self._reply: LiveReply | None = None
        self._fed = 0
        self.first_changed = -1
        """The first line that the last call of `part` changed, -1 for none."""

    def drop(self) -> None:
        self._part = self._stream = None

    def part(self, live: LiveReply, width: int) -> DrawnPart:
        from phoenix_tui.markdown.stream import MarkdownStream  # noqa: PLC0415 - 21 ms (docs/decisions/libraries.md)

        part, stream, self.first_changed = self._part, self._stream, -1
        if part is None or stream is None or self._reply is not live:
            stream = self._stream = MarkdownStream(width)
            part = self._part = DrawnPart(
                "answer:live", DrawnKind.ANSWER, stream.lines, stream=stream, codes=stream.codes
            )
            self._reply, self._fed = live, 0
        if self._fed < len(live.pieces):
            self.first_changed = stream.add("".join(live.pieces[self._fed :]))
            self._fed = len(live.pieces)
            del part.strips[self.first_changed :]
        if part.dim is not (live.stopped is not None):
            part.dim, self.first_changed = live.stopped is not None, 0
            part.strips.clear()
        return part

    def finish(self, key: str, text: str, width: int, live: LiveReply) -> DrawnPart:
        """A stored answer; the one that just streamed, and is not `live` any more, keeps its lines and strips."""
        from phoenix_tui.markdown.stream import MarkdownStream  # noqa: PLC0415 - 21 ms (docs/decisions/libraries.md)

        part, growing = self._part, self._stream
        has_ended = self._reply is not live  # stopped text stays, and may begin like an earlier answer
        if has_ended and part is not None and growing is not None and text.startswith(growing.source):
            stream, strips = growing, part.strips
            del strips[stream.end(text[len(stream.source) :]) :]
            if part.dim:
                strips.clear()
            self._part = self._stream = None
        else:
            stream, strips = MarkdownStream(width), []
            stream.begin(text)
        waiting = stream if stream.jobs or stream.waiting else None
        return DrawnPart(key, DrawnKind.ANSWER, stream.lines, stream=waiting, codes=stream.codes, strips=strips)


class OpenParts:
    """Parts that are shown whole, and the answer under way."""

    def __init__(self, model: TranscriptModel) -> None:
        self.model = model
        self.width = 80
        self.opened: set[str] = set()
        """Keys of parts that are open, or folded while `all_open`."""
        self.all_open = False
        self.answer = LiveAnswer()

    def is_open(self, key: str) -> bool:
        return (key in self.opened) is not self.all_open

    def finish_answer(self, key: str, text: str) -> DrawnPart:
        return self.answer.finish(key, text, self.width, self.model.live)


class Drawing(Struct, frozen=True):
    """All that drawing depends on beside the message."""

    model: TranscriptModel
    width: int
    stack: OpenParts
    aspect: float = 0.0
    """Height of a cell divided by its width; 0 where images are not shown."""

    def message_parts(self, message: StoredMessage) -> list[DrawnPart]:
        """The parts of one stored message, and of replies that were stopped below it."""
        stopped = self.model.stopped.get(message.seq, ())
        is_row = bool(stopped) and message.role is Role.SYSTEM and speech.is_stop_notice(text_of(message))
        parts = [] if is_row else self._stored_parts(message)
        for number, reply in enumerate(stopped):
            words = text_of(message) if is_row and number == 0 else ""
            parts += self._stopped_parts(f"{message.seq}:{number}", message.seq, reply, words)
        return parts

    def _stored_parts(self, message: StoredMessage) -> list[DrawnPart]:
        """The parts of the message itself; none for tool results, which their calls show."""
        bare = self.model.plain and not message.silent
        if shows_nothing(message) and not (bare and message.origin is Origin.TOOL):
            return []
        if message.silent:
            return [self._notice(f"message:{message.seq}", speech.SILENT)]
        if bare:
            rows = speech.bare_rows(_AUTHORS.get(message.origin, "note"), message.blocks, self.width)
            return [_long_part(f"message:{message.seq}", DrawnKind.NOTE, rows)]
        if message.role is Role.ASSISTANT:
            shared = self._draw_shared_reads(message)
            return list(self._assistant_parts(message)) if shared is None else shared
        texts = text_of(message)
        key = f"message:{message.seq}"
        if message.role is Role.SYSTEM:
            notes = [self._notice(key, texts)] if texts else []
            if message is self.model.stop_notice:
                notes = []  # below the text that was stopped
            return notes + list(self._call_parts([b for b in message.blocks if isinstance(b, ToolUseBlock)]))
        if message.origin in _REPORTS:
            rows = speech.report_rows(
                _REPORTS[message.origin],
                texts,
                self.width,
                is_open=self.stack.is_open(key),
                action=fold_action(key),
                words=completion_words(texts),
            )
            return [_long_part(key, DrawnKind.NOTE, rows, foldable=True)]
        images = [block for block in message.blocks if isinstance(block, ImageBlock)]
        attached = find_attachments(message.blocks)
        if is_init_request(texts):
            texts, attached = "/init", (TextBlock(texts, attached="the request of /init"), *attached)
        said = speech.SpokenMessage(texts, tuple(images), attached, tuple(marks(message)))
        rows = speech.prompt_rows(said, self.width, is_open=self.stack.is_open(key), action=fold_action(key))
        prompt = _long_part(key, DrawnKind.PROMPT, rows)
        is_long = len(prompt.lines) > speech.LONGEST_FOLDED or len(texts) > speech.LOOKED_AT
        prompt.foldable = is_long or bool(attached)
        shown = [self._image_part(f"{message.seq}:{n}", image, speech.BAR) for n, image in enumerate(images)]
        return [prompt, *(part for part in shown if part is not None)]

    def _stopped_parts(self, key: str, seq: int, reply: LiveReply, words: str) -> list[DrawnPart]:
        """A text that was stopped and is not stored, above the row about the stop."""
        answer = self.stack.finish_answer(f"{STOPPED}{key}", reply.text)
        answer.dim = True
        answer.strips.clear()
        if reply.stopped is None:
            return [answer]
        rows = speech.draw_stop(reply.stopped, self.width, words, copies=self.model.copies(seq, reply))
        return [answer, DrawnPart(f"stopped:{key}", DrawnKind.NOTE, rows)]

    def plain_parts(self, message: StoredMessage | None) -> list[DrawnPart]:
        """A stored message, or without one the reply under way, whose drawing failed: as text alone, and said so."""
        if message is not None and shows_nothing(message) and message.origin is not Origin.TOOL:
            return []
        author, key, blocks = "answer", "live", list[Block]()
        if message is None:
            blocks.append(TextBlock(self.model.live.text))
            if self.model.error is not None:
                blocks.append(TextBlock(without_keys(self.model.error.message)))
        else:
            author, key = _AUTHORS.get(message.origin, "note"), f"message:{message.seq}"
            for block in message.blocks:
                blocks.append(block)
                if isinstance(block, ToolUseBlock):
                    blocks.append(TextBlock(self.model.calls.view(block).output))
        rows = speech.bare_rows(author, blocks, self.width)
        head = list(speech.notice_rows(speech.UNDRAWABLE, self.width))
        return [_long_part(key, DrawnKind.NOTE, rows, head=head)]

    def _notice(self, key: str, text: str) -> DrawnPart:
        if not speech.is_summary_notice(text):
            return _long_part(key, DrawnKind.NOTE, speech.notice_rows(text, self.width))
        rows = speech.summary_rows(text, self.width, is_open=self.stack.is_open(key), action=fold_action(key))
        return _long_part(key, DrawnKind.NOTE, rows, foldable=True)

    def live_parts(self) -> Iterator[DrawnPart]:
        live = self.model.live
        for number, notice in enumerate(live.notices):
            yield DrawnPart(f"notice:{number}", DrawnKind.NOTE, list(speech.notice_rows(notice, self.width)))
        if live.drafting is not None:
            yield DrawnPart("draft", DrawnKind.TOOL, speech.draft_lines(*live.drafting, self.width))
        if live.stopped is not None:
            stored = self.model.stop_notice
            words = text_of(stored) if stored is not None else ""
            yield DrawnPart("stopped", DrawnKind.NOTE, speech.draw_stop(live.stopped, self.width, words))
        if self.model.error is not None:
            yield DrawnPart("error", DrawnKind.NOTE, speech.error_lines(self.model.error, self.width))

    def live_thinking(self) -> DrawnPart | None:
        live, key = self.model.live, "thinking:live"
        if not live.thinking.pieces:
            return None
        goes_on = not live.pieces and live.stopped is None
        words, newest = pluralize(live.thinking.words, "word"), live.thinking.newest_line if goes_on else ""
        lines = [speech.thinking_row(words, self.width, fold_action(key), newest=newest, live=goes_on)]
        if self.stack.is_open(key):
            lines += speech.thinking_rows(live.thinking.newest, self.width)
        return DrawnPart(key, DrawnKind.THINKING, lines, foldable=True)

    def welcome(self) -> DrawnPart | None:
        record = self.model.conversation
        if record is None:
            return None
        if record.agent is not None:
            rows = speech.report_rows("task", record.agent.task, self.width, is_open=False, action="")
            return DrawnPart("welcome", DrawnKind.NOTE, list(rows))
        lines = speech.welcome_lines(str(record.cwd), record.model, record.permission_mode.value, self.width)
        return DrawnPart("welcome", DrawnKind.NOTE, lines)

    def call_part(self, view: ToolView) -> DrawnPart:
        key = f"call:{view.id}"
        now = self.model.clock.monotonic()
        block = tool_block(view, self.width, is_open=self.stack.is_open(key), action=fold_action(key), now=now)
        part = _long_part(key, DrawnKind.TOOL, block.rows, foldable=True, head=block.lines)
        part.colours = block.colours
        return part

    def _image_part(self, name: str, image: ImageBlock, bar: Span) -> DrawnPart | None:
        """An image in cells: larger once it was opened."""
        if not self.aspect:
            return None
        key = f"image:{name}"
        large, room = self.stack.is_open(key), max(self.width - MARGIN - 1, 1)
        box = box_of(image.attachment_id, (image.width, image.height), room, self.aspect, large=large)
        return DrawnPart(
            key, DrawnKind.IMAGE, [StyledLine((bar,), margin=MARGIN)] * box.rows, foldable=True, picture=box
        )

    def _draw_shared_reads(self, message: StoredMessage) -> list[DrawnPart] | None:
        """The parts of a message whose reads share a row with its neighbours'; None when they do not."""
        run = run_of(self.model, message.seq)
        if len(run) == 1:
            return None
        views = [view for seq in run for view in reads_of(self.model, seq)]
        key = f"reads:{views[0].id}"
        if self.stack.is_open(key):
            return [self.call_part(view) for view in reads_of(self.model, message.seq)]
        if message.seq != run[0]:
            return []
        return [self._folded_part(key, views)]

    def _folded_part(self, key: str, views: Sequence[ToolView]) -> DrawnPart:
        """Calls in one row, which in the focus view wraps rather than leave one out."""
        action = fold_action(key)
        if self.model.is_focused:
            return DrawnPart(key, DrawnKind.TOOL, focus_lines(views, self.width, action), foldable=True)
        return DrawnPart(key, DrawnKind.TOOL, [reads_line(views, self.width, action)], foldable=True)

    def _assistant_parts(self, message: StoredMessage) -> Iterator[DrawnPart]:
        calls: list[ToolUseBlock] = []
        for position, block in enumerate(message.blocks):
            key = f"{message.seq}:{position}"
            if isinstance(block, ToolUseBlock):
                calls.append(block)
                if result := read_submission(block):
                    yield from self._call_parts(calls)
                    calls = []
                    yield self.stack.finish_answer(f"answer:{key}", result)
                continue
            yield from self._call_parts(calls)
            calls = []
            if isinstance(block, TextBlock) and block.text.strip():
                yield self.stack.finish_answer(f"answer:{key}", block.text)
            elif isinstance(block, ThinkingBlock) and block.text.strip() and not self.model.is_focused:
                key = f"thinking:{key}"
                head = speech.thinking_row(speech.length_of(block.text), self.width, fold_action(key))
                rows = speech.thinking_rows(block.text, self.width) if self.stack.is_open(key) else ()
                yield _long_part(key, DrawnKind.THINKING, rows, foldable=True, head=[head])
        yield from self._call_parts(calls)

    def _call_parts(self, blocks: list[ToolUseBlock]) -> Iterator[DrawnPart]:
        views = [self.model.calls.view(block) for block in blocks]
        for folds, group in groupby(views, key=self.model.fold_name):
            run = list(group)
            key = f"reads:{run[0].id}"
            is_alone = len(run) == 1 and not self.model.is_focused
            if not folds or is_alone or self.stack.is_open(key):
                for view in run:
                    yield self.call_part(view)
                    images = enumerate(self.model.calls.images(view.id))
                    shown = (self._image_part(f"{view.id}:{n}", image, _INDENT) for n, image in images)
                    yield from (part for part in shown if part is not None)
            else:
                yield self._folded_part(key, run)


def last_kind(message: StoredMessage) -> DrawnKind | None:
    """The kind of a message's last part, known without drawing it; None when it shows nothing."""
    if shows_nothing(message):
        return None
    if message.silent:
        return DrawnKind.NOTE
    if message.role is Role.USER:
        return DrawnKind.NOTE if message.origin in _REPORTS else DrawnKind.PROMPT
    for block in reversed(message.blocks):
        if isinstance(block, ToolUseBlock):
            return DrawnKind.ANSWER if read_submission(block) else DrawnKind.TOOL
        if isinstance(block, TextBlock | ThinkingBlock) and block.text.strip():
            answer = DrawnKind.NOTE if message.role is Role.SYSTEM else DrawnKind.ANSWER
            return answer if isinstance(block, TextBlock) else DrawnKind.THINKING
    return None


def fold_action(key: str) -> str:
    """The click action that folds or opens a part; keys hold model-made ids, so only through `repr`."""
    return f"fold({key!r})"
