"""The stage: the widgets of the workspace, their layout, and what joins them to the services."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, Final

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.timer import Timer

from engine.ports import ConversationChanges
from phoenix_tui.clipboard import Clipboard
from phoenix_tui.commands.bench import Bench
from phoenix_tui.commands.run import run_command
from phoenix_tui.commands.settings import use_model
from phoenix_tui.labels import invitation
from phoenix_tui.screens.ask_line import AskLineScreen
from phoenix_tui.screens.base import PhoenixScreen
from phoenix_tui.screens.confirm import ConfirmScreen
from phoenix_tui.screens.desk import ENGINE_ERRORS, Desk
from phoenix_tui.screens.overview import Overview
from phoenix_tui.screens.pick import PickScreen
from phoenix_tui.screens.text_sheet import TextSheet
from phoenix_tui.screens.visible import Parts
from phoenix_tui.screens.welcoming import Welcoming
from phoenix_tui.still import StillColumn, StillRow
from phoenix_tui.surface import Launch, Services
from phoenix_tui.themes import THEMES
from phoenix_tui.widgets.conversation_list import ConversationList
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.question_text import short_path
from phoenix_tui.widgets.status_line import Status, StatusLine
from phoenix_tui.widgets.title_row import LIST_FROM, Heading, TitleRow
from phoenix_tui.widgets.transcript.view import TranscriptView
from phoenix_tui.widgets.welcome_panel import GUIDE, WelcomePanel
from tools.clean import clean

WIDE_FROM: Final = 160
TOAST_SECONDS: Final = 5.0


class Stage(PhoenixScreen[None]):
    """Drawn before anything is opened; `attend` brings it to life."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it without ClassVar
        (0, "-narrow"),
        (LIST_FROM, "-with-list"),
        (WIDE_FROM, "-wide"),
    ]

    class Leaving(Message):
        """The user wants to quit, and nothing is in the way."""

    class Listening(Message):
        """The composer has the focus: keys can be taken."""

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        self.launch = launch
        self.rows = ConversationList(plain=launch.plain)
        self.parts = Parts(
            TranscriptView(),
            WelcomePanel(),
            TitleRow(plain=launch.plain),
            Dock(plain=launch.plain),
            StatusLine(plain=launch.plain),
            self._greet,
        )
        self.bench: Bench | None = None
        self.welcoming: Welcoming | None = None
        self._ready = asyncio.Event()
        self._asked_early = False
        """Something was asked for before the services were there: what greets would only be laid out to vanish."""

    def compose(self) -> ComposeResult:
        """List, conversation, status line; set before they are mounted, so that one layout does for the first frame."""
        width = self.app.size.width
        self.add_class([name for least, name in self.HORIZONTAL_BREAKPOINTS or () if width >= least][-1])
        self.parts.transcript.display = False
        self.parts.status.status = Status(mode=self.launch.permission_mode, model=self.launch.model)
        self.parts.title.heading = Heading(folder=short_path(self.launch.cwd))
        with StillRow(id="body"):
            yield self.rows
            with StillColumn(id="conversation"):
                yield self.parts.title
                yield self.parts.transcript
                yield self.parts.dock
        yield self.parts.status

    def on_mount(self) -> None:
        """Take the keys at once; what is typed before the first frame is not lost."""
        self.set_focus(self.parts.dock.composer)
        self.watch(self.parts.status, "status", partial(follow_status, self))
        self.post_message(self.Listening())

    async def furnish(self) -> None:
        """Mount what the first frame does not show."""
        await self.parts.dock.furnish()
        await self.query_one("#conversation").mount(self.parts.welcome, after=self.parts.transcript)

    async def attend(self, services: Services, clipboard: Clipboard, keymap: dict[str, str]) -> None:
        """Open what was asked for and answer what was typed meanwhile."""
        parts, engine = self.parts, services.engine
        overview = Overview(engine, self.rows, parts.title, self._mark_unread)
        desk = Desk(services, self.launch, parts, overview, self.tell, self._later)
        self.bench = bench = Bench(desk, parts.dock, self, self.tell, clipboard, keymap)
        self.welcoming = Welcoming(
            parts.welcome, services.onboarding, lambda name: self.when_ready(_installed(name)), self.tell, self._errand
        )
        await overview.start()
        await self._open_first(desk)
        self._ready.set()
        if parts.dock.composer.content:
            desk.typed(parts.dock.composer.content)
        if services.warning:
            self.tell(services.warning, bad=True)
        if self.launch.images:
            await desk.attach(self.launch.images)
        if self.launch.prompt:
            await desk.send(self.launch.prompt)
        if self.launch.pick:
            await run_command(bench, "resume", "")

    async def _open_first(self, desk: Desk) -> None:
        if self.launch.conversation_id:
            try:
                await desk.open(self.launch.conversation_id)
            except ENGINE_ERRORS as error:
                self.tell(str(error), bad=True)
            else:
                return
        await desk.begin()

    def when_ready(self, work: Callable[[Bench], Awaitable[None]]) -> None:
        """Do `work` as soon as the services are there, in the order of asking."""
        self._asked_early = self._asked_early or not self._ready.is_set()
        self.run_worker(self._when_ready(work), group="work")

    async def _when_ready(self, work: Callable[[Bench], Awaitable[None]]) -> None:
        await self._ready.wait()
        if self.bench is None:
            return
        try:
            await work(self.bench)
        except ENGINE_ERRORS as error:
            self.tell(str(error), bad=True)
        if self._asked_early:
            self._asked_early = False
            self._greet(not self.parts.transcript.display)

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say something in passing."""
        self.app.notify(clean(text), severity="error" if bad else "information", timeout=TOAST_SECONDS, markup=False)

    def _greet(self, wanted: bool) -> None:
        if self.welcoming is None or (wanted and self._asked_early):
            return
        if not wanted:
            self.parts.welcome.show(None)
            return
        self.welcoming.greet(self.parts.title.heading.folder, self.parts.status.status)
        if self.parts.welcome.welcome is not None and self.parts.welcome.welcome.needs_model:
            self.run_worker(self.welcoming.look(), group="welcome")

    def _say_open(self, is_open: bool) -> None:
        status = self.parts.status
        status.status = replace(status.status, open_thing=is_open)

    def _errand(self, words: str) -> None:
        self.parts.status.errand = words

    def _mark_unread(self, conversation_id: str) -> None:
        unread = ConversationChanges(unread=True)
        self.when_ready(lambda bench: bench.desk.services.engine.change(conversation_id, unread))

    def _later(self, seconds: float, work: Callable[[], Awaitable[None]]) -> Timer:
        return self.set_timer(seconds, work)

    async def pick(self, sheet: PickScreen) -> str | None:
        """The key of the chosen row."""
        return await self.app.push_screen_wait(sheet)

    async def ask_line(self, heading: str, text: str = "", *, secret: bool = False) -> str | None:
        """One line."""
        return await self.app.push_screen_wait(AskLineScreen(heading, text, secret=secret))

    def read(self, heading: str, text: Content) -> None:
        """Text to read."""
        self.app.push_screen(TextSheet(heading, text))

    def themes(self) -> tuple[str, ...]:
        """Names of Phoenix's themes, the one in use first."""
        return tuple(sorted((theme.name for theme in THEMES), key=lambda name: name != self.app.theme))

    def choose_theme(self, name: str) -> None:
        """Change the colours."""
        self.app.theme = name

    async def leave(self) -> None:
        """Quit; asks first while something runs."""
        busy = self.bench.desk.overview.busy if self.bench is not None else 0
        what = (
            "A run is under way. Quit and stop it?" if busy == 1 else f"{busy} runs are under way. Quit and stop them?"
        )
        if not busy or await self.app.push_screen_wait(ConfirmScreen(what, "quit", "stay")):
            self.post_message(self.Leaving())


def follow_status(stage: Stage, status: Status) -> None:
    """What the status line knows is said by the empty composer and by the list too."""
    desk = stage.bench.desk if stage.bench is not None else None
    begun = desk is not None and desk.conversation is not None and desk.conversation.record.message_count > 0
    words = invitation(status.state, begun=begun)
    if stage.parts.dock.composer.placeholder != words:
        stage.parts.dock.composer.placeholder = words
    if desk is not None:
        desk.overview.writes(status.moment.writing or bool(status.moment.drafting))


def _installed(reference: str) -> Callable[[Bench], Awaitable[None]]:
    """Use a model that was just installed, but not in a conversation that has a real one."""

    async def use(bench: Bench) -> None:
        conversation = bench.desk.conversation
        if conversation is None or conversation.record.model == GUIDE:
            await use_model(bench, reference)
            bench.tell(f"{reference} is installed and in use.")
        else:
            bench.desk.prefer(model=reference)
            bench.tell(f"{reference} is installed; /model chooses it here, new conversations use it.")

    return use
