"""The MCP servers of a conversation: read, connect, end; and the sign-in to one."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Sequence
from typing import ClassVar, Final, Protocol

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.executor.requests import EngineError
from engine.ports.mcp import ServerState, ServerView, SignInAddress
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.mcp import (
    allow_secrets,
    begin,
    details_of,
    end,
    enter_sandbox,
    forget_kept,
    is_signed_in,
    kept_question,
    leave_sandbox,
    paste,
    reconnect,
    sandbox_question,
    secrets_question,
    servers_now,
    sign_in_lines,
    switch,
    switch_for_good,
)
from phoenix_tui.features.page import PageRow
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.rows_sheet import RowsSheet
from phoenix_tui.modals.text_sheet import ConfirmSheet, LineSheet, TextSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.server_text import (
    NO_SANDBOX,
    NO_SERVERS,
    NOT_WORKING,
    command_words,
    facts,
    sandbox_words,
    show_origin,
    state_words,
)
from phoenix_tui.widgets.bases import run_latest
from tools.call_values import SandboxMode
from tools.clean import clean_line
from tools.wording import one_line

OPENED: Final = "The browser is asked to open it."
WAITING: Final = "Waiting for the browser …"
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
        """Host and address over the keys, and the outcome of the last one."""
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
        """Open the address in the browser."""
        self.app.open_url(self._address.url)
        self._say(OPENED)

    async def action_copy(self) -> None:
        """Copy the address."""
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


LONGEST_CAUSE: Final = 400
TICK: Final = 1.0
DOTS: Final = {
    ServerState.CONNECTED: "●",
    ServerState.CONNECTING: "◐",
    ServerState.WAITING: "○",
    ServerState.NEEDS_AUTH: "!",
    ServerState.FAILED: "✗",
    ServerState.OFF: "–",
}


class McpSheet(RowsSheet):
    """Stays open over actions; below the rows are the command of the chosen server and what an action did."""

    DEFAULT_CSS = "McpSheet { & #remark { margin: 1 0 0 2; } }"
    TYPED: ClassVar[bool] = False
    EMPTY: ClassVar[str] = NO_SERVERS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS), *bindings(Scope.MCP)]

    def __init__(self, front: FrontEnd, views: Sequence[ServerView], notices: Sequence[str], clipboard: Copier) -> None:
        self._front, self._clipboard = front, clipboard
        self._views = views
        self._notices = notices
        self._said = ""
        super().__init__("MCP servers", _rows(views), _keys())

    def begin(self) -> None:
        """Look again each second while it is open."""
        super().begin()
        self.set_interval(TICK, self._look)

    def _look(self) -> None:
        self._do(self._nothing(), keeps=True)

    async def _nothing(self) -> str:
        return self._said

    def remark(self, entry: PageRow | None) -> str:
        """Reason why the chosen one does not work, its origin and command, then the outcome of an action."""
        view = self._view_of(entry)
        about = [f"{show_origin(view)}: {command_words(view)}"] if view is not None else []
        if view is not None and view.sandbox is not None:
            words = sandbox_words(view.sandbox, view.sandbox_reason)
            about.append(f"sandbox: {words} · {hint(('mcp_sandbox', 'changes it'))}")
        if view is not None and view.kept is not None and view.kept.is_dir():
            about.append(f"keeps what it writes below the home folder · {hint(('mcp_forget', 'removes it'))}")
        if view is not None and view.state in NOT_WORKING:
            about.insert(0, one_line(state_words(view), LONGEST_CAUSE))
        return "\n".join(filter(None, (*about, *self._notices[:3], self._said)))

    def action_take(self) -> None:
        """Read all about the chosen one, or sign in to it where it wants that."""
        if (view := self._view_of(self.chosen)) is not None:
            if view.secrets:
                self._ask_secrets(view)
            elif view.state is ServerState.NEEDS_AUTH:
                self._said = f"Asking {clean_line(view.name)} where to sign in …"
                self._do(self._sign_in(view))
            else:
                self._do(self._read(view))

    def _ask_secrets(self, view: ServerView) -> None:
        """Ask before a project's server gets secrets; any other answer than yes changes nothing."""

        self._ask(secrets_question(view), ("give them", "do not"), allow_secrets(self._front, view))

    def action_sandbox(self) -> None:
        """Run the chosen one without a sandbox, after a yes, or in one again."""
        view = self._view_of(self.chosen)
        if view is None:
            return
        if view.sandbox is None:
            self._said = NO_SANDBOX
            self._draw()
        elif view.sandbox is SandboxMode.OFF:
            self._do(enter_sandbox(self._front, view))
        else:
            self._ask(sandbox_question(view), ("run it without", "keep the sandbox"), leave_sandbox(self._front, view))

    def action_forget_kept(self) -> None:
        """Remove what the chosen one keeps, after a yes."""
        if (view := self._view_of(self.chosen)) is not None:
            self._ask(kept_question(view), ("remove it", "keep it"), self._forget(view))

    async def _forget(self, view: ServerView) -> str:
        self._said = f"Removing what {clean_line(view.name)} keeps …"  # packages of npx are thousands of files
        return await forget_kept(self._front, view)

    def _ask(self, question: str, answers: tuple[str, str], work: Coroutine[None, None, str]) -> None:
        """Do the work after a yes; any other answer changes nothing."""

        def answered(yes: bool | None) -> None:
            if yes:
                self._do(work)
            else:
                work.close()

        self.app.push_screen(ConfirmSheet(question, *answers), answered)

    def action_switch_for_good(self) -> None:
        """Switch the chosen one off in every conversation, or on again."""
        if (view := self._view_of(self.chosen)) is not None:
            self._do(switch_for_good(self._front, view))

    def action_reconnect(self) -> None:
        """Connect to the chosen one again."""
        if (view := self._view_of(self.chosen)) is not None:
            self._said = f"Connecting to {clean_line(view.name)} …"
            self._do(reconnect(self._front, view.name))

    def action_switch(self) -> None:
        """Switch the chosen one off in this conversation, or on again."""
        if (view := self._view_of(self.chosen)) is not None:
            self._do(switch(self._front, view))

    def action_end(self) -> None:
        """End the chosen one."""
        if (view := self._view_of(self.chosen)) is not None:
            self._do(end(self._front, view.name))

    def _do(self, work: Coroutine[None, None, str], *, keeps: bool = False) -> None:
        self.run_worker(self._done(work), group="look" if keeps else "mcp", exclusive=keeps)

    async def _done(self, work: Coroutine[None, None, str]) -> None:
        """Carry it out, or say why it failed."""
        try:
            self._said = await work
            self._views = await servers_now(self._front)
        except EngineError as error:
            self._said = str(error)
        self._entries = self._found = _rows(self._views)
        self._chosen = max(min(self._chosen, len(self._entries) - 1), 0)
        if self.is_attached:
            self._draw()

    async def _read(self, view: ServerView) -> str:
        text = await details_of(self._front, view.name)
        self.app.push_screen(TextSheet(f"MCP server {clean_line(view.name)}", Content(text)))
        return ""

    async def _sign_in(self, view: ServerView) -> str:
        address = await begin(self._front, view.name)
        self.app.push_screen(SignInSheet(self._front, view.name, address, self._clipboard))
        return ""

    def _view_of(self, row: PageRow | None) -> ServerView | None:
        return next((view for view in self._views if row is not None and view.name == row.key), None)


def _rows(views: Sequence[ServerView]) -> Sequence[PageRow]:
    return [
        PageRow("", view.name, f"{DOTS[view.state]} {clean_line(view.name)}", facts(view), view.state.value)
        for view in views
    ]


def _keys() -> str:
    """The keys, in 56 columns: all of them fit beside the heading at 80."""
    return hint(
        ("sheet_take", "opens"),
        ("mcp_reconnect", "retry"),
        ("mcp_switch", "off"),
        ("mcp_off", "for good"),
        ("mcp_end", "ends"),
    )
