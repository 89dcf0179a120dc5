"""Esc and Ctrl+C: what stands on the screen is looked at, and what they mean then is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from phoenix_tui.keys.active_keys import key
from phoenix_tui.widgets.conversation_list import way_out
from phoenix_tui.workspace.escape_rules import (
    AGAIN,
    AT_REST,
    DOUBLE,
    DoublePress,
    EscAction,
    EscContext,
    escape,
    interrupt,
)

if TYPE_CHECKING:
    from phoenix_tui.workspace.composer_events import ComposerEvents
    from phoenix_tui.workspace.sidebar import Sidebar
    from phoenix_tui.workspace.workspace_parts import WorkspaceParts


class EscapeHandler:
    """Does what `escape` and `interrupt` say."""

    def __init__(self, stage: WorkspaceParts, drawer: Sidebar, writing: ComposerEvents) -> None:
        self._screen, self._parts = stage.screen, stage.parts
        self._ready, self._words = stage.startup, stage.toasts
        self._drawer = drawer
        self._writing = writing
        self.escapes = DoublePress(DOUBLE)
        """Any other key ends it."""
        self.interrupts = DoublePress(AGAIN)
        self.actions: Mapping[EscAction, Callable[[], object]] = {
            EscAction.COPY: self._copy,
            EscAction.LEAVE_FILTER: drawer.rows.leave,
            EscAction.CLOSE_IN_DOCK: self._close_in_dock,
            EscAction.CLOSE_LIST: drawer.leave,
            EscAction.LEAVE_BLOCKS: lambda: self._parts.transcript.blocks.leave(),
            EscAction.STOP_INSTALLING: self._stop_installing,
            EscAction.LEAVE_INSERT: self._parts.dock.composer.vim.escape,
            EscAction.STOP_RUN: self._ready.stop,
            EscAction.LEAVE_LIST: self._take_keys,
            EscAction.GO_TO_PARENT: lambda: self._ready.command("agents parent"),
            EscAction.DISMISS_NOTICE: self._dismiss_notice,
            EscAction.AWAIT_SECOND: self.escapes.begin,
            EscAction.CLEAR_DRAFT: self._clear_draft,
            EscAction.GO_BACK: self._go_back,
            EscAction.ASK_AGAIN: self._ask_again,
            EscAction.QUIT: self.interrupts.begin,
        }

    def escape(self) -> None:
        """Esc, from any focus and in every state."""
        action = escape(self._situation(self.escapes))
        if action in AT_REST:
            self._ready.stop()  # what the key before asked for may not have come here yet, nor a sub-agent's end
            self._screen.clear_selection()
        self.actions[action]()

    def interrupt(self) -> bool:
        """Ctrl+C; True when it asks to quit."""
        action = interrupt(self._situation(self.interrupts, selected=bool(self._selected)))
        if action in AT_REST:
            self._ready.stop()
        self.actions[action]()
        return action is EscAction.QUIT

    def _situation(self, pair: DoublePress, *, selected: bool = False) -> EscContext:
        dock, status, view = self._parts.dock, self._parts.status.status, self._parts.view
        welcoming = self._ready.welcoming
        return EscContext(
            selected=selected,
            narrowed=bool(way_out(self._drawer.rows.model)),
            open_in_dock=dock.is_open,
            list_over=self._drawer.is_over,
            in_blocks=view is not None and view.canvas.cursor.is_on,
            installing=welcoming is not None and welcoming.is_installing,
            inserting=dock.composer.vim.takes_escape,
            running=self._ready.may_stop,
            in_list=self._drawer.rows.has_focus,
            in_agent=status.agent_counts.is_agent,
            noticed=dock.notice.standing is not None and not status.read_only,
            written=bool(dock.composer.text),
            again=pair.is_begun,
        )

    @property
    def _selected(self) -> str:
        return self._parts.dock.composer.selected_text or self._screen.get_selected_text() or ""

    def _copy(self) -> None:
        selected = self._selected
        self._ready.then(lambda ctx: ctx.actions.copy(ctx, selected))

    def _take_keys(self) -> None:
        self._screen.set_focus(self._parts.dock.composer)

    def _close_in_dock(self) -> None:
        self._parts.dock.close()
        self._take_keys()

    def _stop_installing(self) -> None:
        if self._ready.welcoming is not None:
            self._ready.welcoming.stop()

    def _dismiss_notice(self) -> None:
        self._parts.dock.notice.standing = None

    def _clear_draft(self) -> None:
        self.escapes.end()  # a third Esc begins another pair
        self._writing.clear()

    def _go_back(self) -> None:
        self.escapes.end()
        self._ready.command("rewind")

    def _ask_again(self) -> None:
        self.interrupts.begin()
        self._words.tell(f"Press {key('interrupt')} again to quit.")
