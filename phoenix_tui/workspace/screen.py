"""The workspace: its widgets, and the objects that handle their messages and the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from phoenix_tui.features.catalogue import is_command
from phoenix_tui.keys.active_keys import BACK, CLOSES
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import PhoenixScreen
from phoenix_tui.panes.column import ConversationColumn
from phoenix_tui.text.labels import short_path
from phoenix_tui.widgets.bases import StillRow, run_latest
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.conversation_list import EMPTY_LIST, ConversationList
from phoenix_tui.widgets.dock import Dock, ImageChips
from phoenix_tui.widgets.status_line import Heading, StatusLine, StatusValues, TitleRow
from phoenix_tui.widgets.transcript.signals import BlockWanted, CursorMoved, LinkClicked, Rewrapped, SelectionCopied
from phoenix_tui.widgets.welcome_panel import WelcomePanel
from phoenix_tui.workspace import sidebar
from phoenix_tui.workspace.composer_events import ComposerEvents
from phoenix_tui.workspace.escape import EscapeHandler
from phoenix_tui.workspace.startup import Startup
from phoenix_tui.workspace.widgets import Toasts, WorkspaceWidgets

if TYPE_CHECKING:
    from phoenix_tui.commands.run import CommandContext
    from phoenix_tui.lifecycle.launch import Launch
    from phoenix_tui.widgets.question_panel import QuestionPanel
    from phoenix_tui.widgets.queue_panel import QueuePanel
    from phoenix_tui.widgets.route_panel import RoutePanel
    from phoenix_tui.workspace.shell_typing import ShellTyping


PAGES: Final = {"page_up": -10, "page_down": 10}
"""Rows that a page of a question is."""


class WorkspaceScreen(PhoenixScreen[None]):
    """Screen of many conversations, one visible; drawn before anything is opened. Its objects handle requests."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.WORKSPACE)
    HORIZONTAL_BREAKPOINTS = sidebar.BREAKPOINTS

    class Listening(Message):
        """The composer has the focus: keys can be taken."""

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        plain = launch.plain
        self.launch = launch
        self.rows = ConversationList(plain=plain)
        self.parts = WorkspaceWidgets(WelcomePanel(), TitleRow(plain=plain), Dock(plain=plain), StatusLine(plain=plain))
        self.toasts = Toasts(self)
        self.startup = Startup(self, launch, self.parts, self.toasts)
        self.sidebar = sidebar.Sidebar(self, self.rows, self.parts, self.startup)
        self.writing = ComposerEvents(self, self.parts, self.startup, self.toasts)
        self.shell_typing: ShellTyping | None = None
        self.escape_handler = EscapeHandler(self, self.parts, self.startup, self.sidebar, self.writing, self.toasts)

    # Layout.

    def compose(self) -> ComposeResult:
        """List, conversation, status line; set before they are mounted, so that one layout does for the first frame."""
        width = self.app.size.width
        self.add_class([name for least, name in self.HORIZONTAL_BREAKPOINTS or () if width >= least][-1])
        self.parts.status.status = StatusValues(
            mode=self.launch.permission_mode,
            sandbox=self.launch.sandbox,
            model=self.launch.model,
            profile=self.launch.profile,
            supervisor=self.launch.supervisor,
        )
        self.parts.title.heading = Heading(folder=short_path(self.launch.cwd))
        self.rows.set_class(self.launch.is_first, EMPTY_LIST)
        with StillRow(id="body"):
            yield self.rows
            with ConversationColumn(id="conversation"):
                yield self.parts.title
                yield Static(id="blank")  # place of the transcript
                yield self.parts.dock
        yield self.parts.status

    def on_mount(self) -> None:
        """Take the focus at once; early input is not lost."""
        self.set_focus(self.parts.dock.composer)
        self.parts.dock.use_vim(self.launch.vim)
        self.watch(self.parts.status, "status", self.writing.follow)
        self.post_message(self.Listening())

    def on_resize(self) -> None:
        """Adapt the sidebar after a resize, since the list may now fit beside the conversation."""
        self.call_after_refresh(self.sidebar.follow_resize)
        self.call_after_refresh(lambda: self._fit_shell_in(self.parts.view))  # to another height

    def on_screen_suspend(self) -> None:
        self.show_esc_hint(CLOSES)
        self.toasts.make_way()

    def on_screen_resume(self) -> None:
        """Show the action of Esc after a sheet closed; the list over a narrow screen may still be open."""
        self.show_esc_hint(self.sidebar.esc_hint)

    def list_width(self, columns: int) -> int:
        return self.sidebar.width(columns)

    def show_esc_hint(self, words: str) -> None:
        """Show the action of Esc on the innermost open thing; empty when none is open."""
        status = self.parts.status
        status.status = replace(status.status, esc_hint=words)

    # Messages of its widgets.

    @on(Composer.Submitted)
    def _submit(self, asked: Composer.Submitted) -> None:
        """Enter; keys behind a command are meant for the sheet, or the conversation, that it opens."""
        if is_command(asked.text):
            self._hold_keys(may_work=True)
        self.writing.submit(asked.text)

    @on(Composer.QueueWanted)
    def _queue(self, asked: Composer.QueueWanted) -> None:
        """Tab, or the key that steers, while the agent works; Up behind it is meant for the queue."""
        self._hold_keys(may_work=True)
        self.writing.queue(asked.text, steer=asked.steer)

    @on(Composer.AlwaysQueueWanted)
    def _always_queue(self) -> None:
        self.startup.act(lambda actions: actions.always_queue())

    @on(Composer.HelpWanted)
    def _help(self) -> None:
        self.startup.command("help")

    @on(Composer.LeaveWanted)
    def _leave(self) -> None:
        run_latest(self, self.startup.leave, "leave")

    @on(Composer.ModeChanged)
    def _name_mode(self) -> None:
        self.writing.name_mode()

    @on(Composer.KeyRefused)
    def _say_why(self, asked: Composer.KeyRefused) -> None:
        self.toasts.tell(asked.why)

    @on(Dock.Chosen)
    def _run_completed(self, asked: Dock.Chosen) -> None:
        self._hold_keys(may_work=True)
        self.startup.command(asked.text)

    @on(Dock.Edited)
    def _keep_draft(self, asked: Dock.Edited) -> None:
        self.writing.follow_edit(asked.text)

    @on(Composer.ImagesDropped)
    def _attach_images(self, asked: Composer.ImagesDropped) -> None:
        self.startup.then(lambda ctx: ctx.sending.attaching.attach(asked.paths))

    @on(Composer.KeyPasted)
    def _keep_key(self, asked: Composer.KeyPasted) -> None:
        self.writing.keep_key(asked.key)

    @on(Composer.PasteOpened)
    def _open_paste(self, asked: Composer.PasteOpened) -> None:
        self.startup.act(lambda actions: actions.open_paste(asked.mark))

    @on(Composer.PasteTaken)
    def _remark_on_paste(self, asked: Composer.PasteTaken) -> None:
        self.writing.remark_on_paste(asked)

    @on(ImageChips.Opened)
    def _show_image(self, asked: ImageChips.Opened) -> None:
        self.startup.command(f"images {asked.number}")

    def on_queue_panel_left(self, asked: QueuePanel.Left) -> None:
        """Back to the composer; by name, as the panel is loaded behind the first frame."""
        self.writing.take_focus(older=asked.older)

    def on_queue_panel_wanted(self, asked: QueuePanel.Wanted) -> None:
        self.startup.act(lambda actions: actions.change_queue(asked))

    def on_question_panel_answered(self, asked: QuestionPanel.Answered) -> None:
        if self.startup.ctx is not None:  # it is, as a question is shown
            self.run_worker(self.startup.ctx.sending.answer(asked.call_id, asked.answer), group="work")

    def on_route_panel_changed(self, asked: RoutePanel.Changed) -> None:
        """The supervisor's decision has fewer agents now; by name, as the panel is loaded with the first decision."""
        ctx = self.startup.ctx_in_use
        if ctx is not None and ctx.active.visible is not None:
            ctx.active.visible.update_details(planned=asked.left)

    @on(WelcomePanel.Installed)
    def _use_installed(self, asked: WelcomePanel.Installed) -> None:
        self.startup.act(lambda actions: actions.use_installed(asked.reference))

    @on(SelectionCopied)
    def _copy(self, asked: SelectionCopied) -> None:
        self.startup.act(lambda actions: actions.copy(asked.text))

    def on_text_selected(self) -> None:
        """The mouse has selected a text."""
        self.startup.act(lambda actions: actions.copy_selection())

    @on(LinkClicked)
    def _open_link(self, asked: LinkClicked) -> None:
        self.startup.act(lambda actions: actions.open_link(asked.target))

    @on(BlockWanted)
    def _act_on_block(self, asked: BlockWanted) -> None:
        self.startup.act(lambda actions: actions.block(asked))

    @on(Rewrapped)
    def _fit_shell(self, message: Rewrapped) -> None:
        self._fit_shell_in(message.view)

    def _fit_shell_in(self, view: Widget | None) -> None:
        if self.startup.ctx_in_use is not None and view is not None:
            from phoenix_tui.workspace.sending import fit_running_line  # noqa: PLC0415 - loaded with the services

            fit_running_line(self.startup.ctx_in_use.active, view)

    @on(CursorMoved)
    def _follow_cursor(self, asked: CursorMoved) -> None:
        """The block cursor takes the keys and gives them back."""
        self.show_esc_hint(BACK if asked.is_on else "")
        if asked.is_on or asked.view.has_focus:
            self.set_focus(asked.view if asked.is_on else self.parts.dock.composer)

    @on(ConversationList.Opened)
    def _open_conversation(self, asked: ConversationList.Opened) -> None:
        self.sidebar.leave()
        self.startup.then(lambda ctx: ctx.active.open(asked.conversation_id))

    @on(ConversationList.Previewed)
    def _preview_chosen(self, asked: ConversationList.Previewed) -> None:
        self.sidebar.preview(asked.conversation_id)

    @on(ConversationList.Wanted)
    def _change_rows(self, asked: ConversationList.Wanted) -> None:
        self.startup.act(lambda actions: actions.rows(asked.action, asked.ids))

    @on(ConversationList.EndedUnseen)
    def _mark_unread(self, asked: ConversationList.EndedUnseen) -> None:
        self.startup.then(lambda ctx: ctx.active.index.mark_unread(asked.conversation_id))

    @on(Dock.Opened)
    def _open_thing_changed(self, event: Dock.Opened) -> None:
        self.show_esc_hint(event.esc_hint or self.sidebar.esc_hint)

    # Actions of its keys, by their names in `keymap.KEYS`.

    def action_stop(self) -> None:
        self.escape_handler.escape()

    def action_send_now(self) -> None:
        self.writing.send_now()

    def action_view(self, what: str) -> None:
        """Move or unfold the transcript from any focus; a question in focus scrolls itself."""
        question = self.parts.dock.asking
        if question is not None and question.has_focus_within and what in PAGES:
            question.action_scroll_asked(PAGES[what])
        elif self.parts.view is not None:
            self.parts.view.action_view(what)

    def action_shell_keys(self) -> None:
        """Type into the running shell line, or no longer; one that needs the whole terminal gets that."""
        shell, writing = self.parts.dock.completer.shell, self.shell_typing
        if shell is not None and shell.wants_screen:
            self.startup.act(lambda actions: actions.lend_terminal(shell))
        elif (writing is not None and writing.is_on) or (shell is not None and shell.modes is not None):
            self._type_into_shell()
        else:
            self._hold_keys(may_work=True)
            self.startup.then(self._type_once_it_runs)

    async def _type_once_it_runs(self, ctx: CommandContext) -> None:
        await ctx.sending.line_runs()
        self._type_into_shell()

    def _type_into_shell(self) -> None:
        if self.shell_typing is None:
            from phoenix_tui.workspace.shell_typing import ShellTyping  # noqa: PLC0415 - loaded with the first use

            self.shell_typing = ShellTyping(self, self.parts, self.toasts)
            if self.key_order is not None:
                self.key_order.give_to(self.shell_typing)
        self.shell_typing.toggle()

    def action_list(self) -> None:
        self.sidebar.toggle()

    def action_go(self, number: int) -> None:
        self.sidebar.go(number)

    def _hold_keys(self, *, may_work: bool = False) -> None:
        if self.key_order is not None:
            self.key_order.hold(may_work=may_work)

    def action_command(self, line: str) -> None:
        """Run a command by key; later keys are meant for the sheet that it opens."""
        self._hold_keys()
        self.startup.command(line)

    def action_act(self, name: str) -> None:
        """An action that is no command (`Actions.by_key`); likewise."""
        self._hold_keys()
        self.startup.act(lambda actions: actions.by_key[name]())
