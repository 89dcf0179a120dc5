"""The stage: the widgets of the workspace, their layout, and what joins them to the services."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Static

from engine.machine.states import is_busy
from phoenix_tui.labels import invitation
from phoenix_tui.panes.column import ConversationColumn
from phoenix_tui.screens.base import PhoenixScreen
from phoenix_tui.screens.list_drawer import BREAKPOINTS
from phoenix_tui.screens.parts import Parts
from phoenix_tui.screens.stillness import Stillness
from phoenix_tui.still import StillRow
from phoenix_tui.widgets.conversation_list import ConversationList
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.question_text import short_path
from phoenix_tui.widgets.status_line import Status, StatusLine
from phoenix_tui.widgets.title_row import Heading, TitleRow
from phoenix_tui.widgets.welcome_panel import WelcomePanel
from tools.clean import clean

if TYPE_CHECKING:
    from phoenix_tui.commands.bench import Bench
    from phoenix_tui.screens.backstage import Backstage
    from phoenix_tui.screens.late_start import LateStart
    from phoenix_tui.screens.welcoming import Welcoming
    from phoenix_tui.surface import Launch

READ_ONLY: Final = "Read-only: /fork makes a copy to go on with"
TOAST_SECONDS: Final = 5.0
READ_SECONDS: Final = 1.0
"""In which something short is seen and read; a sheet that comes sooner belongs to what was said."""


class Stage(PhoenixScreen[None]):
    """Drawn before anything is opened; `attend` brings it to life."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS

    class Leaving(Message):
        """The user wants to quit, and nothing is in the way."""

    class Listening(Message):
        """The composer has the focus: keys can be taken."""

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        self.launch = launch
        self.rows = ConversationList(plain=launch.plain)
        self.parts = Parts(
            WelcomePanel(),
            TitleRow(plain=launch.plain),
            Dock(plain=launch.plain),
            StatusLine(plain=launch.plain),
            self.greet,
        )
        self._blank = Static(id="blank")
        """Stands where the transcript will."""
        self.backstage: Backstage | None = None
        """Everything that needs the services; its modules are loaded behind the first frame."""
        self._told: dict[str, float] = {}
        """What was said of late, and when."""
        self._ready = asyncio.Event()
        self._furnishing = False
        """The first frame stands."""
        self.stillness = Stillness(self)
        self.late: LateStart | None = None
        """Until the services are there."""
        self._stopped_early = False
        """Esc was pressed since then."""
        self._asked_early = False
        """Something was asked for before the services were there: what greets would only be laid out to vanish."""

    def compose(self) -> ComposeResult:
        """List, conversation, status line; set before they are mounted, so that one layout does for the first frame."""
        width = self.app.size.width
        self.add_class([name for least, name in self.HORIZONTAL_BREAKPOINTS or () if width >= least][-1])
        self.parts.status.status = Status(
            mode=self.launch.permission_mode,
            model=self.launch.model,
            profile=self.launch.profile,
            supervisor=self.launch.supervisor,
        )
        self.parts.title.heading = Heading(folder=short_path(self.launch.cwd))
        with StillRow(id="body"):
            yield self.rows
            with ConversationColumn(id="conversation"):
                yield self.parts.title
                yield self._blank
                yield self.parts.dock
        yield self.parts.status

    def on_mount(self) -> None:
        """Take the keys at once; what is typed before the first frame is not lost."""
        self.set_focus(self.parts.dock.composer)
        self.parts.dock.use_vim(self.launch.vim)
        self.watch(self.parts.status, "status", partial(follow_status, self))
        self.post_message(self.Listening())

    async def furnish(self) -> None:
        """Mount what the first frame does not show."""
        self._furnishing = True
        if self._asked_early or self.launch.prompt:
            self.stillness.begin()
        await self.parts.dock.furnish()
        module = await asyncio.to_thread(import_module, "phoenix_tui.widgets.transcript.view")
        self.parts.view = view = module.TranscriptView()
        self.parts.status.beside = lambda: self.parts.transcript.frames.catch_up()
        with self.app.batch_update():
            await self.query_one("#conversation").mount(view, self.parts.welcome, after=self._blank)
            await self._blank.remove()

    async def attend(self, backstage: Backstage) -> None:
        """Open what was asked for and answer what was typed meanwhile."""
        self.backstage = backstage
        await backstage.open(self.launch)
        asked_early = self._asked_early  # what was asked for takes it back as soon as it is begun
        self._ready.set()
        await backstage.begin(self.launch)
        if self._stopped_early and self.launch.prompt:
            backstage.bench.sending.stop()
        if not asked_early:
            self.stillness.end_soon()

    @property
    def bench(self) -> Bench | None:
        """What commands work with; None until the services are there."""
        return self.backstage.bench if self.backstage is not None else None

    @property
    def welcoming(self) -> Welcoming | None:
        """What greets; None until the services are there."""
        return self.backstage.welcoming if self.backstage is not None else None

    def when_ready(self, work: Callable[[Bench], Awaitable[None]]) -> None:
        """Do `work` as soon as the services are there, in the order of asking."""
        if not self._ready.is_set():
            self._asked_early = True
            if self._furnishing:
                self.stillness.begin()
        self.run_worker(self._when_ready(work, early=not self._ready.is_set()), group="work")

    @property
    def may_stop(self) -> bool:
        """Whether something runs in view, or was asked for early."""
        if self._ready.is_set() and self.bench is not None:
            return self.bench.sending.may_stop
        return self._asked_early or bool(self.launch.prompt)

    def stop_run(self) -> None:
        """Stop what runs in view, and as soon as it runs what was asked for early."""
        if self._ready.is_set() and self.bench is not None:
            self.bench.sending.stop()
        else:
            self.call_later(self._stop_early)  # behind an Enter that was pressed before

    def _stop_early(self) -> None:
        if self._ready.is_set() and self.bench is not None:
            self.bench.sending.stop()
        else:
            self._stopped_early = self._asked_early or bool(self.launch.prompt)

    async def _when_ready(self, work: Callable[[Bench], Awaitable[None]], *, early: bool) -> None:
        await self._ready.wait()
        if self.backstage is None:
            return
        was_early, self._asked_early = self._asked_early, False
        await self.backstage.do(work)
        if early and self._stopped_early:
            self.backstage.bench.sending.stop()
        if was_early:
            self.stillness.end_soon()
            self.greet(not self.parts.transcript.display)

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say something in passing, once as long as it stands there."""
        now = time.monotonic()
        if now - self._told.get(text, -TOAST_SECONDS) < TOAST_SECONDS:
            return
        self._told = {said: at for said, at in self._told.items() if now - at < TOAST_SECONDS} | {text: now}
        self.app.notify(clean(text), severity="error" if bad else "information", timeout=TOAST_SECONDS, markup=False)

    def on_screen_suspend(self) -> None:
        """A sheet comes: what was said in passing, and could be read, does not lie over it; troubles do."""
        if not self.query("Toast.-error"):
            self._let_go()

    def leave_words(self) -> None:
        """Another conversation comes: what was said of the one before goes, troubles too.

        What no conversation said stays, and what came with the change.
        """
        told = {clean(text) for text in self._told}
        if not self.has_class("-panes") and all(str(toast.render()) in told for toast in self.query("Toast")):
            self._let_go()

    def _let_go(self) -> None:
        if time.monotonic() - max(self._told.values(), default=0.0) >= READ_SECONDS:
            self.app.clear_notifications()
            self._told.clear()

    def greet(self, wanted: bool) -> None:
        """Show the welcome panel, or put it away."""
        if self.welcoming is None or (wanted and self._asked_early):
            return
        if not wanted:
            self.parts.welcome.show(None)
            return
        self.welcoming.greet(self.parts.title.heading.folder, self.parts.status.status)
        if self.parts.welcome.welcome is not None and self.parts.welcome.welcome.needs_model:
            self.run_worker(self.welcoming.look(), group="welcome")

    def say_way_out(self, words: str) -> None:
        """What Esc does to the innermost open thing; empty where nothing is open."""
        status = self.parts.status
        status.status = replace(status.status, way_out=words)

    async def leave(self) -> None:
        """Quit; asks first while something runs."""
        if self.backstage is None or await self.backstage.may_leave():
            self.post_message(self.Leaving())


def follow_status(stage: Stage, status: Status) -> None:
    """What the status line knows is said by the empty composer and by the list too."""
    desk = stage.bench.desk if stage.bench is not None else None
    begun = desk is not None and desk.conversation is not None and desk.conversation.record.message_count > 0
    words = invitation(status.state, begun=begun, family=status.family)
    if status.read_only and not status.family.is_agent:
        words = READ_ONLY
    composer = stage.parts.dock.composer
    if composer.placeholder != words:
        composer.placeholder = words
    composer.busy = is_busy(status.state) and not status.family.is_agent
