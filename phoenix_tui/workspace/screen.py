"""The workspace: where its widgets stand, and which object does what they and the keys ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Static

from phoenix_tui.keys.esc_hint import CLOSES
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import PhoenixScreen
from phoenix_tui.panes.column import ConversationColumn
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.conversation_list import ConversationList
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.image_chips import ImageChips
from phoenix_tui.widgets.question_panel import QuestionPanel
from phoenix_tui.widgets.question_text import short_path
from phoenix_tui.widgets.queue_panel import QueuePanel
from phoenix_tui.widgets.status_line import Status, StatusLine
from phoenix_tui.widgets.still import StillRow
from phoenix_tui.widgets.title_row import Heading, TitleRow
from phoenix_tui.widgets.transcript.signals import BlockWanted, CursorMoved, LinkClicked, SelectionCopied
from phoenix_tui.widgets.welcome_panel import WelcomePanel
from phoenix_tui.workspace import attachment_events, composer_events, sidebar, transcript_events
from phoenix_tui.workspace.escape import EscapeHandler
from phoenix_tui.workspace.startup import Startup
from phoenix_tui.workspace.toasts import Toasts
from phoenix_tui.workspace.widgets import WorkspaceWidgets
from phoenix_tui.workspace.workspace_parts import WorkspaceParts

if TYPE_CHECKING:
    from phoenix_tui.lifecycle.launch import Launch


class WorkspaceScreen(PhoenixScreen[None]):
    """Many conversations, one in view; drawn before anything is opened. What is asked for goes to what it owns."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.WORKSPACE)
    HORIZONTAL_BREAKPOINTS = sidebar.BREAKPOINTS

    class Leaving(Message):
        """The user wants to quit, and nothing is in the way."""

    class Listening(Message):
        """The composer has the focus: keys can be taken."""

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        plain = launch.plain
        self.launch = launch
        self.rows = ConversationList(plain=plain)
        self.parts = WorkspaceWidgets(WelcomePanel(), TitleRow(plain=plain), Dock(plain=plain), StatusLine(plain=plain))
        self.toasts = Toasts(self)
        self.startup = Startup(self, launch, self.parts, lambda: self.post_message(self.Leaving()))
        self.stage = WorkspaceParts(self, launch, self.parts, self.rows, self.toasts, self.startup)
        self.drawer = sidebar.Sidebar(self, self.rows, self.parts, self.startup)
        self.writing = composer_events.ComposerEvents(self, self.parts, self.startup, self.toasts)
        self.around_text = attachment_events.AttachmentEvents(self, self.parts, self.startup, self.toasts)
        self.reading = transcript_events.TranscriptEvents(self, self.parts, self.startup)
        self.escape_handler = EscapeHandler(self.stage, self.drawer, self.writing)

    # How it stands there.

    def compose(self) -> ComposeResult:
        """List, conversation, status line; set before they are mounted, so that one layout does for the first frame."""
        width = self.app.size.width
        self.add_class([name for least, name in self.HORIZONTAL_BREAKPOINTS or () if width >= least][-1])
        self.parts.status.status = Status(
            mode=self.launch.permission_mode,
            sandbox=self.launch.sandbox,
            model=self.launch.model,
            profile=self.launch.profile,
            supervisor=self.launch.supervisor,
        )
        self.parts.title.heading = Heading(folder=short_path(self.launch.cwd))
        with StillRow(id="body"):
            yield self.rows
            with ConversationColumn(id="conversation"):
                yield self.parts.title
                yield Static(id="blank")  # where the transcript will stand
                yield self.parts.dock
        yield self.parts.status

    def on_mount(self) -> None:
        """Take the keys at once; what is typed before the first frame is not lost."""
        self.set_focus(self.parts.dock.composer)
        self.parts.dock.use_vim(self.launch.vim)
        self.watch(self.parts.status, "status", self.writing.follow)
        self.post_message(self.Listening())

    def on_resize(self) -> None:
        """The list over a narrow screen may stand beside the conversation now."""
        self.call_after_refresh(self.drawer.resized)

    def on_screen_suspend(self) -> None:
        """A sheet lies over it."""
        self.say_way_out(CLOSES)
        self.toasts.make_way()

    def on_screen_resume(self) -> None:
        """It is gone; the list over a narrow screen may still be there."""
        self.say_way_out(self.drawer.way_out)

    def list_width(self, columns: int) -> int:
        """Cells that the list takes beside the conversation."""
        return self.drawer.width(columns)

    def say_way_out(self, words: str) -> None:
        """What Esc does to the innermost open thing; empty where nothing is open."""
        status = self.parts.status
        status.status = replace(status.status, way_out=words)

    # What its widgets ask for.

    @on(Composer.Submitted)
    @on(Composer.QueueWanted)
    @on(Composer.HelpWanted)
    @on(Composer.LeaveWanted)
    @on(Composer.ModeChanged)
    @on(Composer.DraftHeld)
    @on(Composer.NothingToComplete)
    @on(Dock.Chosen)
    @on(Dock.Edited)
    def write(self, asked: composer_events.ComposerEvent) -> None:
        """Something with the draft."""
        self.writing.take(asked)

    @on(Composer.ImagesDropped)
    @on(Composer.KeyPasted)
    @on(Composer.PasteOpened)
    @on(Composer.PasteTaken)
    @on(ImageChips.Opened)
    @on(QueuePanel.Left)
    @on(QueuePanel.Wanted)
    @on(QuestionPanel.Answered)
    def write_around(self, asked: attachment_events.AttachmentEvent) -> None:
        """Something with pastes and images in it, or with the queue and the question above it."""
        self.around_text.take(asked)

    @on(CursorMoved)
    @on(LinkClicked)
    @on(SelectionCopied)
    @on(BlockWanted)
    def read(self, asked: transcript_events.TranscriptEvent) -> None:
        """Something with the conversation in view."""
        self.reading.take(asked)

    @on(ConversationList.Opened)
    @on(ConversationList.Wanted)
    def choose(self, asked: sidebar.SidebarEvent) -> None:
        """Something with rows of the list."""
        self.drawer.take(asked)

    @on(Dock.Opened)
    def open_thing_changed(self, event: Dock.Opened) -> None:
        """Completions, a line of a question, a filter: opened or closed."""
        self.say_way_out(event.way_out or self.drawer.way_out)

    # What its keys ask for, as `keymap.KEYS` names it.

    def action_stop(self) -> None:
        """Esc, from any focus and in every state."""
        self.escape_handler.escape()

    def action_send_now(self) -> None:
        """Stop what runs and send."""
        self.writing.send_now()

    def action_view(self, what: str) -> None:
        """Move or unfold the transcript from any focus."""
        self.reading.view(what)

    def action_list(self) -> None:
        """To the list and back."""
        self.drawer.toggle()

    def action_go(self, number: int) -> None:
        """The conversation at this place of the list."""
        self.drawer.go(number)

    def _hold_keys(self) -> None:
        if self.key_order is not None:
            self.key_order.hold()

    def action_command(self, line: str) -> None:
        """A command by key; what is typed behind it is meant for the sheet that it opens."""
        self._hold_keys()
        self.startup.command(line)

    def action_act(self, name: str) -> None:
        """What is no command: `Actions.by_key`; likewise."""
        self._hold_keys()
        self.startup.then(lambda ctx: ctx.actions.by_key[name](ctx))
