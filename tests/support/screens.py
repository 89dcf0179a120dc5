"""A bare app round one transcript, and the values to fill it with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import App, ComposeResult
from textual.geometry import Region

from engine.machine.messages import Block, Origin, Role, TextBlock, ToolStatus
from engine.machine.states import Idle, State
from engine.records import ConversationRecord, PermissionMode, StoredMessage, ToolCallRecord
from engine.records.runs import Totals
from engine.updates import Snapshot
from phoenix_tui.styles.themes import THEMES
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.signals import BlockSignal, BlockWanted, LinkClicked
from phoenix_tui.widgets.transcript.view import TranscriptView
from tests.support.clocks import SteppedClock


class TranscriptApp(App[None]):
    """An app with only a transcript; records its messages."""

    def __init__(self, clock: SteppedClock | None = None) -> None:
        super().__init__()
        self.animation_level = "none"
        self.view = TranscriptView(TranscriptModel(clock) if clock else None)
        self.links: list[str] = []
        self.wanted: list[BlockSignal] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.screen.set_focus(self.view)

    def on_link_clicked(self, message: LinkClicked) -> None:
        self.links.append(message.target)

    def on_block_wanted(self, message: BlockWanted) -> None:
        self.wanted.append(message.request)

    def shown(self) -> list[str]:
        """The rows on the screen as text, blanks at their ends left out."""
        size = self.view.size
        rows = self.view.render_lines(Region(0, 0, size.width, size.height))
        return [row.text.rstrip() for row in rows]


def message(seq: int, role: Role, origin: Origin, *blocks: Block) -> StoredMessage:
    """A stored message."""
    return StoredMessage(f"m{seq}", seq, 1, seq, role, origin, blocks, 0.0)


def said(seq: int, text: str) -> StoredMessage:
    """A person's message."""
    return message(seq, Role.USER, Origin.HUMAN, TextBlock(text))


def answered(seq: int, *blocks: Block | str) -> StoredMessage:
    """A reply."""
    return message(seq, Role.ASSISTANT, Origin.LLM, *(TextBlock(b) if isinstance(b, str) else b for b in blocks))


def conversation(count: int = 0) -> ConversationRecord:
    """A conversation's record."""
    return ConversationRecord(
        id="c1", title="api-retry", cwd=Path("/home/me/src/relay"), model="anthropic/claude-sonnet-5-5", profile="",
        permission_mode=PermissionMode.ASK, system_prompt="", append_system_prompt="",
        context_window=200_000, context_tokens=0, context_estimated=False, totals=Totals(), draft="", scroll_seq=0,
        context_start_seq=1, summary="", archived=False, deleted=False, created_at=0.0, updated_at=0.0,
        message_count=count, owner_pid=None,
    )  # fmt: skip


def snapshot(
    messages: Sequence[StoredMessage] = (),
    calls: Sequence[ToolCallRecord] = (),
    *,
    count: int = 0,
    state: State | None = None,
    live_text: str = "",
    live_thinking: str = "",
    since: float = 0.0,
) -> Snapshot:
    """Snapshot of a conversation."""
    total = count or max((m.seq for m in messages), default=0)
    return Snapshot(
        conversation(total), state or Idle(0), since, tuple(messages), tuple(calls), live_text, live_thinking,
        None, False, ""
    )  # fmt: skip


def call_record(
    call_id: str, name: str, input_json: str, status: ToolStatus, *, text: str = "", display: str = "", ms: int = 400
) -> ToolCallRecord:
    """A stored call."""
    return ToolCallRecord(call_id, "m", 0, name, input_json, status, text, display, ms)
