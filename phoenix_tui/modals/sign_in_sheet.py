"""The sign-in to an MCP server."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, Final, Protocol

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.executor.requests import EngineError
from engine.ports.mcp import SignInAddress
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.mcp import is_signed_in, paste, sign_in_lines
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.text_sheet import LineSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import run_latest
from tools.clean import clean_line

OPENED: Final = "The browser is asked to open it."
WAITING: Final = "Waiting for the browser …"
TICK: Final = 1.0
PASTE: Final = "Address that the browser was sent to"


class Copier(Protocol):
    """The clipboard."""

    def copy(self, text: str) -> Awaitable[str]:
        """Copy a text; returns the way it went."""
        ...


class SignInSheet(Sheet[bool]):
    """Gives True once the server is connected; nothing is opened by itself."""

    DEFAULT_CSS = "SignInSheet { & Static { height: auto; } & VerticalScroll { scrollbar-size-vertical: 1; } }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open", "Open", id="sign_in.open"),
        Binding("c", "copy", "Copy", id="sign_in.copy"),
        Binding("p", "paste", "Paste", id="sign_in.paste"),
    ]

    def __init__(self, front: FrontEnd, name: str, address: SignInAddress, clipboard: Copier) -> None:
        super().__init__()
        self._front, self._server, self._address, self._clipboard = front, name, address, clipboard
        self._said = WAITING

    def compose(self) -> ComposeResult:
        heading, *lines = sign_in_lines(self._server, self._address)
        letter = f"bold {Tone.NEEDS_YOU.value}"
        keys = (("o", "opens it"), ("c", "copies it"), ("p", "takes a pasted address"), ("Esc", "closes"))
        with VerticalScroll(classes="sheet"):
            yield Static(Content.styled(heading, "bold"), markup=False)
            yield Static(Content("\n" + "\n\n".join(lines) + "\n"), markup=False)
            parts = [part for key, does in keys for part in ((f"{key} ", letter), f"{does}   ")]
            yield Static(Content.assemble(*parts), markup=False)
            yield Static(self._said, id="said", markup=False)

    def on_mount(self) -> None:
        """Look each second whether the server is connected."""
        self.set_interval(TICK, lambda: run_latest(self, self._look, "look"))

    async def _look(self) -> None:
        try:
            if await is_signed_in(self._front, self._server):
                self.dismiss(True)
        except EngineError as error:
            self._say(str(error))

    def _say(self, text: str) -> None:
        self._said = clean_line(text)
        if self.is_mounted:
            self.query_one("#said", Static).update(Content(self._said))

    def action_open(self) -> None:
        self.app.open_url(self._address.url)
        self._say(OPENED)

    async def action_copy(self) -> None:
        self._say(f"Copied {await self._clipboard.copy(self._address.url)}.")

    def action_paste(self) -> None:
        """Ask for the address that the browser was sent to."""
        self.app.push_screen(LineSheet(PASTE), self._take)

    def on_paste(self, event: events.Paste) -> None:
        """Take a pasted address without a line."""
        event.stop()
        self._take(event.text)

    def _take(self, url: str | None) -> None:
        if url and url.strip():
            self.run_worker(self._paste(url), group="paste")

    async def _paste(self, url: str) -> None:
        try:
            self._say(await paste(self._front, self._server, url))
        except EngineError as error:
            self._say(str(error))
