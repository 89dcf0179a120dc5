"""What every screen of Phoenix is built on."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar, cast

from textual.app import App
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Size
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

Result = TypeVar("Result")


class PhoenixScreen(Screen[Result], Generic[Result]):
    """A screen that paints again after any resize, and whose hit test never gives a widget that is being removed
    (Textualize/textual#6643).
    """

    BLANK = True

    @property
    def app(self) -> App[object]:  # type: ignore[override]  # read here, never set
        """The app this screen belongs to."""
        return cast("App[object]", super().app)  # pyright: ignore[reportUnknownMemberType] - Textual leaves it open

    def _screen_resized(self, size: Size) -> None:
        """Lay out for `size`; where it is the old one, another came and went unseen and the terminal lost its rows."""
        unchanged = size == self.size
        super()._screen_resized(size)
        if unchanged:
            self.refresh()

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """The widget under a cell, unless it is detached: selecting would crash on it."""
        widget, offset = super().get_widget_and_offset_at(x, y)
        return (None, None) if widget is not None and not widget.is_attached else (widget, offset)


class Sheet(ModalScreen[Result], PhoenixScreen[Result], Generic[Result]):
    """Something over the workspace that Esc closes; what lies behind stays readable."""

    BLANK = False
    DEFAULT_CSS = """
    Sheet {
        background: $background 0%; align: left bottom;
        & > .sheet {
            width: 1fr; height: auto; max-height: 70%; margin: 0 0 1 0; padding: 0 1;
            background: $background; border-top: solid $accent;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", priority=True)]

    def action_close(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)
