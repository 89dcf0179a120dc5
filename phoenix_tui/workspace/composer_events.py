"""Events of the composer: from a draft to a message or a command, done as soon as the services are open."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.machine.states import is_busy
from phoenix_tui.features.catalogue import BY_NAME, is_command, is_shell_line, split_command
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.text.labels import invitation
from phoenix_tui.widgets.bases import run_latest
from phoenix_tui.widgets.composer import Composer, is_prose
from phoenix_tui.widgets.pasting import remark_on

if TYPE_CHECKING:
    from phoenix_tui.commands.run import CommandContext
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.widgets.status_line import StatusValues
    from phoenix_tui.workspace.onboarding import Welcoming
    from phoenix_tui.workspace.startup import Startup
    from phoenix_tui.workspace.widgets import Toasts, WorkspaceWidgets

IN_A_PROGRAM: Final = "Your keys go to the command above"


class ComposerEvents:
    """Decides whether a text is a message, a command or a shell line, and where it goes."""

    def __init__(self, screen: PhoenixScreen[None], parts: WorkspaceWidgets, ready: Startup, words: Toasts) -> None:
        self._screen = screen
        self._parts = parts
        self._composer = parts.dock.composer
        self._ready = ready
        self._words = words

    def submit(self, text: str) -> None:
        """Handle a message, a command, a shell command, or a yes to an offer."""
        if self._ready.ctx_in_use is not None:
            self._ready.ctx_in_use.active.drafts.note_typing("")  # the message about the empty box takes the long way
        elif self._ready.slow_start is not None:
            self._ready.slow_start.send(text)
        if not text.strip() and not self._has_images:
            route, welcoming = self._parts.dock.route, self._parts.welcoming
            shell = self._parts.dock.completer.shell
            if shell is not None and (modes := shell.modes) and (shell.wants_screen or modes.application_keys):
                self._ready.act(lambda actions: actions.lend_terminal(shell))
                return
            if route is not None and route.accept():
                return
            if self._composer.answering.wants("enter", is_empty=True) and self._parts.dock.question.take_all():
                return
            if welcoming is not None and welcoming.can_install:
                self._ready.then(lambda ctx: self._install(ctx, welcoming))
            else:
                interrupted = self._parts.status.status.details.resumable
                self._ready.act(lambda actions: actions.resume(interrupted=interrupted))
        elif is_command(text):
            self._remember(text)
            self._ready.command(text)
        elif is_shell_line(text):
            self._ready.then(lambda ctx: self._hand_over(ctx.sending.shell(text)))
        else:
            self._ready.then(lambda ctx: self._hand_over(ctx.sending.send(text)))

    @property
    def _has_images(self) -> bool:
        reading = self._ready.ctx_in_use is not None and self._ready.ctx_in_use.sending.attaching.place.under_way
        return bool(self._parts.dock.chips.images or reading)

    async def _hand_over(self, sending: Awaitable[None]) -> None:
        """Wait until a message is accepted; until then Tab queues, as while the agent works."""
        try:
            await sending
        finally:
            self._composer.keys.sending = max(self._composer.keys.sending - 1, 0)

    async def _install(self, ctx: CommandContext, welcoming: Welcoming) -> None:
        """Install the model on offer after a yes of its own: one Enter may have been meant for something else."""
        if await ctx.sheets.confirm(welcoming.install_question, "download", "not now"):
            run_latest(self._screen, welcoming.install, "install")

    def queue(self, text: str, *, steer: bool = False) -> None:
        """Tab while the agent works: the draft waits, or the running turn reads it; a command needs no waiting."""
        if is_command(text):
            self._ready.then(lambda ctx: self._send_call(ctx, text, queue=True))
        else:
            self._ready.then(lambda ctx: ctx.sending.send(text, queue=True, steer=steer))

    async def _send_call(self, ctx: CommandContext, text: str, *, queue: bool = False, interrupt: bool = False) -> None:
        """Send the call of a skill or command file like a message; a command of Phoenix runs at once."""
        from phoenix_tui.features.custom_commands import is_custom  # noqa: PLC0415 - the first frame needs none of it

        name, _ = split_command(text)
        if name not in BY_NAME and await is_custom(ctx.active.services.invocables, ctx.active.folder, text):
            await ctx.sending.send(text, queue=queue, interrupt=interrupt)
        else:
            self._screen.post_message(Composer.Submitted(text))

    def send_now(self) -> None:
        self._composer.call_later(self._send_now)  # after the letters typed before it

    def _send_now(self) -> None:
        text = self._composer.take()
        if is_command(text):
            self._ready.then(lambda ctx: self._send_call(ctx, text, interrupt=True))
        elif is_shell_line(text):
            self._ready.then(lambda ctx: ctx.sending.shell(text, now=True))
        elif text.strip():
            self._ready.then(lambda ctx: ctx.sending.send(text, interrupt=True))
        elif self._composer.keys.has_queue:
            self._ready.then(
                lambda ctx: ctx.active.attempt(lambda one: one.queue.send_now("", caps_for(ctx.active, one)))
            )

    def clear(self) -> None:
        from phoenix_tui.features.composing import ENTRY_LIMIT  # noqa: PLC0415 - not for the first frame

        text = self._composer.take()
        if len(text) > ENTRY_LIMIT:
            self._words.tell(f"Too long for the history; {hint(('undo', 'restores it'))}.")
        elif self._composer.draft.prompts is not None:
            self._remember(text)

    def _remember(self, text: str) -> None:
        from phoenix_tui.features.composing import remember  # noqa: PLC0415 - as above

        if trouble := remember(self._composer.draft.prompts, text):
            self._words.tell(trouble, bad=True)

    def follow_edit(self, text: str) -> None:
        """Keep the draft; update the action of Esc."""
        status = self._parts.status
        has_text, words = bool(text), is_prose(text)
        if (status.status.has_text, status.status.is_prose) != (has_text, words):
            status.status = replace(status.status, has_text=has_text, is_prose=words)
        if self._ready.ctx_in_use is not None:
            self._ready.ctx_in_use.active.drafts.note_typing(text)

    def name_mode(self) -> None:
        status, words = self._parts.status, self._composer.vim.esc_hint
        if status.status.vim_esc_hint != words:
            status.status = replace(status.status, vim_esc_hint=words)

    def keep_key(self, secret: str) -> None:
        """Keep a pasted API key where the welcome asks for one; elsewhere it is text like any other."""
        welcome = self._parts.welcome.welcome
        if welcome is not None and welcome.needs_model:
            self._ready.act(lambda actions: actions.keep_key(secret))
        else:
            self._composer.insert(secret)

    def remark_on_paste(self, paste: Composer.PasteTaken) -> None:
        """Report removed parts of a paste, or that it exceeds the model's window."""
        conversation = self._ready.ctx.active.conversation if self._ready.ctx is not None else None
        window = conversation.record.context_window if conversation is not None else 0
        if words := remark_on(paste.taken, paste.length, window):
            self._words.tell(words, bad=paste.taken.is_binary)

    def take_focus(self, *, older: bool) -> None:
        self._screen.set_focus(self._composer)
        if older:
            self._composer.draft.walk(-1)

    def follow(self, status: StatusValues) -> None:
        """Pass the values of the status line to the empty composer."""
        active = self._ready.ctx.active if self._ready.ctx is not None else None
        begun = active is not None and active.conversation is not None and active.conversation.record.message_count > 0
        words = invitation(status.state, begun=begun, agent_counts=status.agent_counts)
        if status.read_only and not status.agent_counts.is_agent:
            words = ""  # the notice above says it
        question = self._parts.dock.asking
        if question is not None:
            words = question.invitation or words
        if self._parts.dock.typing:
            words = IN_A_PROGRAM
        self._composer.keys.suggested = suggestion = status.details.suggestion
        if suggestion and not self._parts.dock.typing:
            words = f"{suggestion} · {hint(('complete', 'accepts'))}"
        if self._composer.placeholder != words:
            self._composer.placeholder = words
        self._composer.keys.busy = is_busy(status.state) and not status.agent_counts.is_agent
        if not is_busy(status.state) and self._ready.ctx is not None:
            self._ready.ctx.sending.refusal.end()
        if self._composer.text.startswith("!"):
            self._parts.dock.composer.vim.tell()  # a line that ended may have changed its folder
