"""Base classes of every screen of Phoenix."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final, Generic, TypeVar, cast

from textual import events, on
from textual._types import CallbackType
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Size
from textual.message_pump import MessagePump
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from phoenix_tui.keys.active_keys import CLOSES
from phoenix_tui.keys.key_order import OPENER, KeyOrder, Opener
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.lifecycle.containment import goes_on_after, is_being_removed, unless_removed
from phoenix_tui.widgets.bases import Opened

Result = TypeVar("Result")


class PhoenixScreen(Screen[Result], Generic[Result]):
    """A screen that paints again after any resize, and whose hit test never gives a widget that is being removed
    (Textualize/textual#6643).
    """

    BLANK = True

    @property
    def app(self) -> App[object]:  # type: ignore[override]  # read here, never set
        """The app this screen belongs to."""
        return cast("App[object]", super().app)

    def _screen_resized(self, size: Size) -> None:
        """Lay out again; when the size is unchanged, another came and went unseen and the terminal lost its rows.

        Every layout is for the app's size, whatever the event says: a layout tells the screen of a resize again, so two
        sizes that disagree would alternate forever.
        """
        size = self.app.size
        unchanged = size == self.size
        super()._screen_resized(size)
        if unchanged:
            self.refresh()

    def list_width(self, columns: int) -> int:
        """Cells of the list of conversations on a screen of `columns`, when it is beside the rest."""
        return 0

    def show_esc_hint(self, words: str) -> None:
        """Show the action of Esc on the innermost open thing; empty when none is open."""

    def _invoke_later(self, callback: CallbackType, sender: MessagePump) -> None:
        """Call after the next refresh, for a widget that may be gone by then."""
        super()._invoke_later(unless_removed(callback, partial(goes_on_after, self)), sender)

    @property
    def key_order(self) -> KeyOrder | None:
        """Dispatcher of keys; an app of a test may have none."""
        order = getattr(self.app, "key_order", None)
        return order if isinstance(order, KeyOrder) else None

    @property
    def is_drawable(self) -> bool:
        """True while it can be drawn: a dismissed screen loses its widgets before it is detached."""
        return not is_being_removed(self)

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """The widget under a cell, unless it is detached: selecting would crash on it."""
        widget, offset = super().get_widget_and_offset_at(x, y)
        return (None, None) if widget is not None and not widget.is_attached else (widget, offset)


MEASURE: Final = 120
"""Cells of a row of a sheet at most: beyond them words and right end are hard to relate."""
SIDES: Final = 2
"""Cells of a sheet's padding."""


class Sheet(ModalScreen[Result], PhoenixScreen[Result], Generic[Result]):
    """A layer over the workspace that Esc closes; the content behind it stays readable.

    It takes the place of the composer: beside the list where that stays on the screen, as wide as the conversation;
    all that is read or typed in it has one measure.
    """

    BLANK = False
    DEFAULT_CSS = """
    Sheet {
        background: $background 0%; align: left bottom;
        & > .sheet {
            width: 1fr; height: auto; max-height: 70%; margin: 0 0 1 0; padding: 0 1;
            background: $background; border-top: solid $accent;
        }
        & > .sheet > * { max-width: 120; }
        & > .sheet > LineInput { max-width: 118; }
        &.-whole > .sheet > * { max-width: 100%; }
        &.-tabbed > .sheet { border-top: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", priority=True),
        *bindings(Scope.WORKSPACE, "help", "help_outside", help="app.help_here", help_outside="app.help_here"),
    ]
    WHOLE: ClassVar[bool] = False
    """True when it needs all the width there is, such as for code side by side."""
    KEPT: ClassVar[tuple[str, ...]] = ()
    """Fields that stay as they are while another tab of its group is shown."""
    show_tab: Callable[[int], None] | None = None
    """Leaves for the tab so many places on, where it is one of several."""
    _was_covered = False
    _opener: Opener | None = None
    """Work that shows this sheet, and goes on with its result."""
    esc_hint: str = CLOSES
    """Action of Esc here, shown only in the status line."""

    @on(events.Mount)
    def let_keys_in(self) -> None:
        """Take the keys that waited for this sheet, after the change of focus to its line."""
        self._opener = OPENER.get()
        if self._opener is not None:
            self.call_later(self._opener.release)

    @on(events.Mount)
    @on(events.Resize)
    def stand(self) -> None:
        """Move to the place of the conversation."""
        self.set_class(self.WHOLE, "-whole")
        for sheet in self.query(".sheet"):
            sheet.styles.margin = (0, 0, 1, self._left)
        for row in self.query(".tabs"):
            row.styles.margin = (0, 0, 0, self._left)

    @on(events.ScreenSuspend)
    @on(events.ScreenResume)
    def continue_keys(self, event: events.Event) -> None:
        """Take keys again after a sheet above this one; the first time `let_keys_in` does."""
        if isinstance(event, events.ScreenSuspend):
            self._was_covered = True
        elif self._was_covered and self._opener is not None:
            self._opener.release()

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close, with the sheets above it; once it is closed, nothing happens.

        Textual would take whatever is on top from the stack, at last the workspace. Keys behind the one that chose
        something wait for what that opens, a sheet or a conversation.
        """
        stack = self.app.screen_stack
        if self not in stack:
            return AwaitComplete()
        for above in reversed(stack[stack.index(self) + 1 :]):
            above.dismiss()
        if result:
            self._hold_keys()
        return super().dismiss(result)

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        """Show all there is, in rows as wide as the sheet is now; nothing where its widgets do so themselves."""

    @property
    def _left(self) -> int:
        """Cells that the list keeps at its left."""
        workspace = self.app.screen_stack[0]
        if self.WHOLE or not isinstance(workspace, PhoenixScreen):
            return 0
        return workspace.list_width(self.app.size.width)

    @property
    def measure(self) -> int:
        """Cells of its rows."""
        room = max(self.app.size.width - self._left - SIDES, 1)
        return room if self.WHOLE else min(room, MEASURE)

    def on_screen_resume(self) -> None:
        """Continue: it is on top again."""
        self.go_on()

    def go_on(self) -> None:
        """Show the action of Esc when the sheet gets the keys."""
        self.show_esc_hint(self.esc_hint)

    def on_dock_opened(self, event: Opened) -> None:
        """Show the action of Esc on a part of the sheet that it closes first."""
        event.stop()
        self.show_esc_hint(event.esc_hint)

    def show_esc_hint(self, words: str) -> None:
        """Set the action of Esc; without words the initial one."""
        self.esc_hint = words or type(self).esc_hint
        workspace = self.app.screen_stack[0]
        if self.is_current and isinstance(workspace, PhoenixScreen):
            workspace.show_esc_hint(self.esc_hint)

    def action_tab(self, by: int) -> None:
        """Show the next or the previous tab."""
        if self.show_tab is not None:
            self.show_tab(by)

    def give_way(self) -> None:
        """Close for another sheet, for which the keys behind this one wait."""
        self._hold_keys()
        self.dismiss(None)

    def _hold_keys(self) -> None:
        if self._opener is not None and self.key_order is not None:
            self.key_order.hold(self._opener, may_work=True)

    def action_close(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)
