"""The workspace: what its widgets ask for is done here."""

from __future__ import annotations

from msgspec.structs import replace
from textual import on

from phoenix_tui.commands.catalogue import is_command, is_shell_line
from phoenix_tui.screens.writing import Writing
from phoenix_tui.way_out import BACK, CLOSES
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.conversation_list import ConversationList
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.question_panel import QuestionPanel
from phoenix_tui.widgets.transcript.signals import CursorMoved, LinkClicked, SelectionCopied, Wanted


class WorkspaceScreen(Writing):
    """Many conversations, one in view; switching never stops one."""

    @on(Composer.Submitted)
    def send_or_run(self, event: Composer.Submitted) -> None:
        """Enter: a message, a command, a shell command, or a yes to what is offered."""
        text = event.text
        if self.bench is not None and self._ready.is_set():
            self.bench.desk.drafts.typed("")  # what says that the box is empty now comes the long way
        elif self.late is not None:
            self.late.send(text)
        if not text.strip() and not self.parts.dock.chips.images:
            self._say_yes()
            return
        if is_command(text):
            self.remember(text)
            self.when_ready(lambda bench: bench.deeds.command(bench, text))
        elif is_shell_line(text):
            self.when_ready(lambda bench: bench.sending.shell(text))
        else:
            self.when_ready(lambda bench: bench.sending.send(text))

    def _say_yes(self) -> None:
        route = self.parts.dock.route
        if route is not None and route.decide(alone=False):
            return
        if self.welcoming is not None and self.welcoming.can_install:
            self.run_worker(self.welcoming.install(), group="install", exclusive=True)
        else:
            interrupted = self.parts.status.status.moment.resumable
            self.when_ready(lambda bench: bench.deeds.resume(bench, interrupted=interrupted))

    @on(Dock.Edited)
    def draft_changed(self, event: Dock.Edited) -> None:
        """Keep the draft; say what Esc does now."""
        status = self.parts.status
        if status.status.has_text != bool(event.text):
            status.status = replace(status.status, has_text=bool(event.text))
        if event.text and self.welcoming is not None:
            self.welcoming.choose(False)
        if self.bench is not None and self._ready.is_set():
            self.bench.desk.drafts.typed(event.text)

    @on(Dock.Opened)
    def open_thing_changed(self, event: Dock.Opened) -> None:
        """Completions, a line of a question, a filter: opened or closed."""
        self.say_way_out(event.way_out or self.drawer.way_out)

    def on_screen_suspend(self) -> None:
        """A sheet lies over the workspace."""
        self.say_way_out(CLOSES)

    def on_screen_resume(self) -> None:
        """It is gone; the list over a narrow screen may still be there."""
        self.say_way_out(self.drawer.way_out)

    @on(Dock.Chosen)
    def command_chosen(self, event: Dock.Chosen) -> None:
        """Enter on a completed command."""
        self.when_ready(lambda bench: bench.deeds.command(bench, event.text))

    @on(Composer.ModeChanged)
    def mode_changed(self) -> None:
        """Say whether Esc is vim's."""
        status, inserts = self.parts.status, self.parts.dock.composer.inserts
        if status.status.inserts is not inserts:
            status.status = replace(status.status, inserts=inserts)

    @on(Composer.ImagesDropped)
    def attach(self, event: Composer.ImagesDropped) -> None:
        """Images by path."""
        self.when_ready(lambda bench: bench.sending.attach(event.paths))

    @on(Composer.ChoiceWanted)
    def choose_offer(self) -> None:
        """Tab on an empty line chooses the model on offer; the keys stay with the composer."""
        if self.welcoming is not None and self.welcoming.choose(True):
            self.call_later(self.set_focus, self.parts.dock.composer)

    @on(Composer.HelpWanted)
    def show_help(self) -> None:
        """`?` on an empty line."""
        self.action_command("help")

    @on(Composer.LeaveWanted)
    def leave_wanted(self) -> None:
        """Ctrl+D on an empty line."""
        self.run_worker(self.leave(), group="leave", exclusive=True)

    @on(QuestionPanel.Answered)
    def answered(self, event: QuestionPanel.Answered) -> None:
        """A question was answered."""
        self.when_ready(lambda bench: bench.deeds.answer(bench, event.call_id, event.answer))

    @on(ConversationList.Opened)
    def open_row(self, event: ConversationList.Opened) -> None:
        """A row was chosen."""
        self.drawer.leave()
        self.when_ready(lambda bench: bench.desk.open(event.conversation_id))

    @on(ConversationList.Wanted)
    def row_wanted(self, event: ConversationList.Wanted) -> None:
        """Rename, archive, delete or bring back from the list."""
        self.when_ready(lambda bench: bench.deeds.rows(bench, event.action, event.ids))

    @on(Composer.KeyPasted)
    def key_pasted(self, event: Composer.KeyPasted) -> None:
        """Where the welcome asks for a key it is kept; elsewhere it is text like any other."""
        welcome = self.parts.welcome.welcome
        if welcome is not None and welcome.needs_model:
            self.when_ready(lambda bench: bench.deeds.keep_key(bench, event.key))
        else:
            self.parts.dock.composer.insert(event.key)

    @on(SelectionCopied)
    def selection_copied(self, event: SelectionCopied) -> None:
        """The transcript wants text on the clipboard."""
        self.when_ready(lambda bench: bench.deeds.copy(bench, event.text))

    @on(CursorMoved)
    def cursor_moved(self, event: CursorMoved) -> None:
        """The block cursor takes the keys and gives them back."""
        self.say_way_out(BACK if event.is_on else "")
        if event.is_on or event.view.has_focus:
            self.set_focus(event.view if event.is_on else self.parts.dock.composer)

    @on(Wanted)
    def block_wanted(self, event: Wanted) -> None:
        """The transcript wants something done that it cannot do itself."""
        self.when_ready(lambda bench: bench.deeds.block(bench, event))

    @on(LinkClicked)
    def link_clicked(self, event: LinkClicked) -> None:
        """Show the real target and ask before it is opened."""
        self.when_ready(lambda bench: bench.deeds.open_link(event.target))
