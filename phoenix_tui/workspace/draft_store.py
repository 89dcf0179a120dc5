"""Drafts: stored when typing pauses and before another conversation comes, and texts that come back."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.timer import Timer

from engine.executor.requests import ENGINE_ERRORS
from engine.ports import ConversationChanges
from engine.ports.storage import DatabaseWaits
from engine.records import Attachment
from phoenix_tui.features.composing import Unsent, ahead_of, join_draft, parse_draft
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.server_text import on_this_loop
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import DockNotice, Notifier
from tools.clean import clean_line
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.conversation import Conversation


@dataclass(slots=True, eq=False)
class Departure:
    """Content of the composer when another conversation was asked for: the draft of the one that is in view by then."""

    unsent: Unsent | None
    """None while nothing was in view yet: what is typed early is for the first conversation."""
    images: tuple[Attachment, ...]
    changed: bool
    """True when some of it is not stored."""

    @property
    def draft(self) -> str:
        unsent = self.unsent or Unsent("")
        return join_draft(unsent.text, [image.id for image in self.images], unsent.folds)


class Departures:
    """Departures that wait for their turn, the oldest first; what is typed behind the newest is in the composer.

    Keys may ask for several conversations while the disk is slow: each draft still gets to the conversation that was
    asked for before it was typed.
    """

    def __init__(self, dock: Dock) -> None:
        self._dock = dock
        self._waiting: deque[Departure] = deque()
        self.count = 0
        """Number of them since the start: what a key began belongs to the same message while it is the same."""
        self._under_way = False
        """True while the conversation of a departure comes into view."""

    @property
    def are_waiting(self) -> bool:
        """True while the composer belongs to a conversation that does not come into view yet."""
        return bool(self._waiting)

    def take(self, *, changed: bool) -> Departure:
        """Take the draft out of the composer: what is typed from now on is for the conversation that comes."""
        dock = self._dock
        self.count += 1
        is_early = not dock.is_loaded and not self._waiting and not self._under_way
        if is_early:
            departure = Departure(None, (), changed=False)
        else:
            unsent = Unsent(dock.composer.content, (), tuple(dock.composer.folds))
            departure = Departure(unsent, dock.chips.images, changed)
            dock.chips.images = ()
            dock.expect()
        self._waiting.append(departure)
        return departure

    def begin(self, departure: Departure) -> None:
        """Note that the turn of a departure has come."""
        self._waiting.remove(departure)
        self._under_way = True

    def end(self) -> None:
        """Let the composer be used where no conversation came, and none will."""
        self._under_way = False
        if not self._waiting and not self._dock.is_loaded:
            self._dock.load("")

    def cancel(self, departure: Departure) -> None:
        """Return the draft of one whose turn will not come; nothing happens once it has come."""
        if departure not in self._waiting:
            return
        place = self._waiting.index(departure)
        self._waiting.remove(departure)
        if departure.unsent is not None:
            self._give(departure.unsent, departure.images, place)

    def give(self, unsent: Unsent, images: Sequence[Attachment] = ()) -> None:
        """Show the draft of the conversation that came, before what was typed for it; or keep it, as the next comes."""
        self._give(unsent, images, 0)

    def give_back(self, unsent: Unsent, images: Sequence[Attachment]) -> None:
        """Put a message that was not sent before the draft of the conversation that will be left next."""
        departure = self._waiting[0]
        since = departure.unsent or Unsent("")
        departure.unsent = parse_draft(ahead_of(unsent, join_draft(since.text, (), since.folds)))
        departure.images, departure.changed = (*images, *departure.images), True

    def _give(self, unsent: Unsent, images: Sequence[Attachment], place: int) -> None:
        if place >= len(self._waiting):
            chips = self._dock.chips
            self._dock.load(unsent.text, unsent.folds)
            chips.images = (*images, *chips.images)
            return
        departure = self._waiting[place]
        since = departure.unsent or Unsent("")
        folds = (*unsent.folds, *((start + len(unsent.text), length) for start, length in since.folds))
        departure.unsent = Unsent(unsent.text + since.text, (), folds)
        departure.images = (*images, *departure.images)
        departure.changed = True


PAUSE: Final = 0.3
"""Seconds without typing after which a draft is stored."""
SOONEST: Final = 0.001
"""Seconds until the soonest timer: Textual divides by them when it is late."""
LATEST: Final = 1.0
"""Seconds after which it is stored though typing continues."""


class SetAside(NamedTuple):
    """A draft that left the composer and is not stored yet."""

    conversation: Conversation | None
    draft: str
    changed: bool


class Drafting:
    """Stores the unsent text and images of the dock."""

    def __init__(
        self,
        dock: Dock,
        toasts: Notifier,
        changing: AbstractAsyncContextManager[None],
        shown: Callable[[], Conversation | None],
        create: Callable[[], Awaitable[Conversation]],
    ) -> None:
        """`changing` is held while another conversation comes into view, `shown` is the one in view, None while a new
        one has nothing in it, and `create` makes that one.
        """
        self._dock = dock
        self._toasts = toasts
        self._changing, self._shown, self._create = changing, shown, create
        self._timer: Timer | None = None
        self._changed_at = 0.0
        """Monotonic time of the first change that is not stored; 0 when everything is."""
        self.departures = Departures(dock)
        self._aside: SetAside | None = None
        self._unstored: dict[str, str] = {}
        """Drafts that could not be stored when their conversation left the view, by its id; "" for a new one."""
        self._storing = asyncio.Lock()
        """Held while a draft is written: a newer one must not be overtaken."""
        self._warmed = ""
        """The conversation whose connection was opened for the message being written."""

    def note_typing(self, text: str) -> None:
        """The composer changed: store the draft when typing pauses; the first letter opens the connection."""
        if self._timer is not None:
            self._timer.stop()
        conversation = self._shown()
        if text and conversation is not None and self._warmed != conversation.id:
            self._warmed = conversation.id
            conversation.warm()
        now = time.monotonic()
        self._changed_at = self._changed_at or now
        pause = min(PAUSE, max(self._changed_at + LATEST - now, 0.0))
        self._timer = self._dock.set_timer(max(pause, SOONEST), self._store_soon)

    def note_sent(self) -> None:
        """Forget the opened connection after a message was sent: the next one opens another."""
        self._warmed = ""

    def _store_soon(self) -> None:
        """Store it without the dock: keys pass through its queue, and the disk may be slow."""
        self._dock.run_worker(self.store(), group="drafts")

    async def store(self) -> None:
        await self.keep()

    async def keep(self) -> bool:
        """Store the draft now, where it was changed; False where that cannot be."""
        self._stop_timer()
        if self.departures.are_waiting or self._aside is not None:
            # The change of conversations stores these drafts: only there a new conversation is still the one meant.
            async with self._changing:
                pass
        if not self._changed_at or not self._dock.is_loaded:
            return True
        if self._shown() is not None:
            return await self._store_changed()
        async with self._changing:  # or a conversation that comes meanwhile would get this draft
            return await self._store_changed()

    def depart(self) -> Departure:
        """Take the draft out of the composer, as another conversation is asked for."""
        changed = bool(self._changed_at)
        self._stop_timer()
        self._changed_at = 0.0
        return self.departures.take(changed=changed)

    def set_aside(self, departure: Departure) -> None:
        """Keep what a departure took along as the draft of the conversation in view, whose turn to leave it is."""
        self.departures.begin(departure)
        if departure.unsent is not None:
            conversation = self._shown()
            # Removals by a command are not reported yet.
            changed = departure.changed or conversation is not None
            self._aside = SetAside(conversation, departure.draft, changed)

    def take_back(self, images: Sequence[Attachment]) -> None:
        """Show the draft again, before what was typed meanwhile, where no other conversation came."""
        aside, self._aside = self._aside, None
        if aside is not None:
            self.departures.give(parse_draft(aside.draft), images)
            self._changed_at = time.monotonic() if aside.changed else 0.0
        self.departures.end()

    async def put_away(self) -> None:
        await self._store_aside()

    @property
    def is_aside(self) -> bool:
        return self._aside is not None

    async def _store_aside(self) -> bool:
        aside, self._aside = self._aside, None
        if aside is None or not aside.changed or await self._store_draft(aside.conversation, aside.draft):
            return True
        self._unstored[aside.conversation.id if aside.conversation is not None else ""] = aside.draft
        return False

    def of(self, conversation: Conversation | None) -> Unsent:
        """The draft to show with a conversation that comes into view."""
        key, stored = (conversation.id, conversation.record.draft) if conversation is not None else ("", "")
        if key in self._unstored:
            self._changed_at = time.monotonic()  # it is tried again
        return parse_draft(self._unstored.pop(key, stored))

    async def add(self, conversation: Conversation, unsent: Unsent) -> None:
        """Put a message that was not sent before the draft of its conversation, which is out of view."""
        draft = ahead_of(unsent, self._unstored.pop(conversation.id, conversation.record.draft))
        try:
            await conversation.change(ConversationChanges(draft=draft))
        except ENGINE_ERRORS as error:
            self._unstored[conversation.id] = draft
            self._toasts.tell(str(error), bad=True)

    def is_unstored(self, conversation_id: str) -> bool:
        """True for a conversation whose draft is here alone."""
        return conversation_id in self._unstored

    @property
    def are_unstored(self) -> bool:
        """True while a draft is here alone and would be lost at an end."""
        return bool(self._unstored)

    async def _store_changed(self) -> bool:
        """Store it in the conversation in view, unless that was done meanwhile."""
        if not self._changed_at or not self._dock.is_loaded:
            return True
        self._changed_at = 0.0
        composer, chips = self._dock.composer, self._dock.chips
        if await self._store_draft(
            self._shown(),
            join_draft(composer.content, [image.id for image in chips.images], composer.folds),
        ):
            return True
        self._changed_at = time.monotonic()
        return False

    async def _store_draft(self, conversation: Conversation | None, draft: str) -> bool:
        """Store this draft, in a new conversation where there is none; False where that cannot be."""
        if not draft and conversation is None:
            return True
        try:
            conversation = conversation or await self._create()
            async with self._storing:
                if not conversation.read_only and draft != conversation.record.draft:
                    await conversation.change(ConversationChanges(draft=draft))
        except ENGINE_ERRORS as error:
            self._toasts.tell(str(error), bad=True)
            return False
        return True

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None


PATIENCE: Final = 2.0
"""Seconds of waiting for the database before one wonders where a message is."""
SHOWN: Final = 60
"""Characters of it that are shown."""
LOOKED_AT: Final = 1_000
"""Characters that are cleaned for it: a paste may have millions."""


@contextmanager
def waiting_words(dock: Dock, text: str, waits: DatabaseWaits) -> Generator[None]:
    """Around the sending of `text`."""
    notice = dock.notice
    before = notice.shown
    words: DockNotice | None = None

    def look(seconds: float) -> None:
        nonlocal words
        if seconds < PATIENCE or words is not None:
            return
        notice.shown = words = DockNotice(
            f"Not saved yet, the database is busy: “{one_line(clean_line(text[:LOOKED_AT]), SHOWN)}”",
            Tone.NEEDS_YOU,
            "Retrying for half a minute; then the text returns to the composer.",
        )
        if dock.composer.draft.prompts is not None:
            with suppress(OSError):  # the disk is already the trouble
                dock.composer.draft.prompts.add(text)

    leave = waits.listen(on_this_loop(look))
    try:
        yield
    finally:
        leave()
        if words is not None and notice.shown is words:
            notice.shown = before
