"""What the transcript in view asks for, and the keys that move it from any focus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from phoenix_tui.keys.esc_hint import BACK
from phoenix_tui.widgets.transcript.signals import BlockWanted, CursorMoved, LinkClicked, SelectionCopied

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.workspace.startup import Startup
    from phoenix_tui.workspace.widgets import WorkspaceWidgets

PAGES: Final = {"page_up": -10, "page_down": 10}
"""Rows that a page of a question is."""

TranscriptEvent: TypeAlias = CursorMoved | LinkClicked | SelectionCopied | BlockWanted


class TranscriptEvents:
    """Moves it, and does what it cannot do itself."""

    def __init__(self, screen: PhoenixScreen[None], parts: WorkspaceWidgets, ready: Startup) -> None:
        self._screen = screen
        self._parts = parts
        self._ready = ready

    def take(self, asked: TranscriptEvent) -> None:
        """Do what a transcript asks for."""
        match asked:
            case SelectionCopied():
                self._ready.then(lambda ctx: ctx.actions.copy(ctx, asked.text))
            case LinkClicked():
                self._ready.then(lambda ctx: ctx.actions.open_link(ctx, asked.target))
            case BlockWanted():
                self._ready.then(lambda ctx: ctx.actions.block(ctx, asked))
            case CursorMoved():
                self._move_keys(asked)
            case _:
                assert_never(asked)

    def _move_keys(self, cursor: CursorMoved) -> None:
        """The block cursor takes the keys and gives them back."""
        self._screen.say_way_out(BACK if cursor.is_on else "")
        if cursor.is_on or cursor.view.has_focus:
            self._screen.set_focus(cursor.view if cursor.is_on else self._parts.dock.composer)

    def view(self, what: str) -> None:
        """Move or unfold the transcript; a question in focus scrolls itself."""
        question = self._parts.dock.question
        if question.has_focus_within and what in PAGES:
            question.action_scroll_asked(PAGES[what])
            return
        if self._parts.view is not None:
            self._parts.view.action_view(what)
