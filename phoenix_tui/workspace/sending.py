"""Messages to the conversation in view with their images, stopping it, and messages that come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual.geometry import Size
from textual.widget import Widget

from engine.executor.requests import ENGINE_ERRORS, Accepted, ApprovalAnswer, NeedsYes, Receipt, Refused, shell_line
from engine.machine.states import Completed, Errored, Failed, Idle, is_busy
from engine.machine.texts import BUSY
from engine.records import Attachment, Delivery
from engine.updates import Noticed
from phoenix_tui.features.agents import Hinting, find_asker, runs_in_view, send_to_background, stop_in_view
from phoenix_tui.features.composing import Unsent, attach_image, remember
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.key_order import keys_wait, let_keys_in
from phoenix_tui.markdown.lines import MARGIN
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.answer_keys import ALWAYS_KEY
from phoenix_tui.widgets.blocks.rows import BAR, column
from phoenix_tui.widgets.notices import DockNotice, Notifier
from phoenix_tui.widgets.transcript.scroller import RIGHT_MARGIN
from phoenix_tui.workspace.active_conversation import ActiveConversation
from phoenix_tui.workspace.draft_store import waiting_words
from tools.clean import clean_line
from tools.terminal.screen import MOST_ROWS
from tools.terminal.values import TerminalSize
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.conversation import Conversation


AGAIN: Final = 4.0
"""Seconds after a refusal in which a second Enter queues the message."""


class BusyRefusal:
    """Enter while the agent works: the refusal above the composer names the ways on, and a second Enter is one.

    The row takes room of its own, so that it covers no text that is being read.
    """

    def __init__(self, active: ActiveConversation) -> None:
        self._active = active
        self._refused: Conversation | None = None
        self._shown: DockNotice | None = None
        self._is_new = True
        """False once the way to queue always was named."""

    def begin(self, conversation: Conversation | None) -> None:
        """Show the ways on for `AGAIN` seconds."""
        dock = self._active.parts.dock
        ways = hint(("send", "again queues it"), ("steer", "gives it to this turn"), ("stop", "stops"))
        always = hint(f"{ALWAYS_KEY} always queues (/config busy_enter)") if self._is_new else ""
        shown = DockNotice(hint("Still working", ways), Tone.NEEDS_YOU, always)
        self._refused, self._shown = conversation, shown
        dock.notice.shown = shown
        dock.composer.answering.offer_always(self._is_new)
        dock.set_timer(AGAIN, partial(self._end_late, shown))
        self._is_new = False

    def queues(self, conversation: Conversation) -> bool:
        """True for the second Enter, which ends the refusal."""
        again = self._shown is not None and self._refused is conversation
        self.end()
        return again

    def end(self) -> None:
        """The refusal is over: the message was sent or queued, or nothing runs any more."""
        if self._shown is None:
            return
        dock, shown, self._shown = self._active.parts.dock, self._shown, None
        dock.composer.answering.offer_always(False)
        if dock.notice.shown is shown:
            dock.notice.shown = None

    def _end_late(self, shown: DockNotice) -> None:
        if self._shown is shown:
            self.end()


LONGEST: Final = 10.0
"""Seconds that a message waits for images that were dropped before its Enter: a network disk may hang."""


class UnsentMessage:
    """A message being written, to which images that are still being read belong."""

    def __init__(self) -> None:
        self.under_way = 0
        self.attached: list[Attachment] = []
        self.is_sent = False
        """True once its Enter was pressed: it takes its images itself."""
        self.settled = asyncio.Event()
        """Set while none is being read."""
        self.settled.set()


class Attaching:
    """Reads images while other keys are pressed, none of which makes them part of another message."""

    def __init__(self, active: ActiveConversation, toasts: Notifier) -> None:
        self._active = active
        self._toasts = toasts
        self._place = UnsentMessage()
        self._departures = 0

    @property
    def place(self) -> UnsentMessage:
        if self._departures != self._active.drafts.departures.count:
            self._departures, self._place = self._active.drafts.departures.count, UnsentMessage()
        return self._place

    async def attach(self, images: Sequence[Path | bytes]) -> None:
        active, place = self._active, self.place
        with active.in_flight.one():  # a conversation without anything else stays until it has them
            async with _under_way(place):
                try:
                    conversation = await active.current()  # before reading: another may come into view meanwhile
                except ENGINE_ERRORS as error:
                    self._toasts.tell(str(error), bad=True)
                    return
                for image in images:
                    try:
                        attachment = await attach_image(conversation, image)
                    except ENGINE_ERRORS as error:
                        self._toasts.tell(str(error), bad=True)
                    else:
                        await self._add(conversation, place, attachment)

    def take(self) -> UnsentMessage:
        """Take the message being written with its images, as it is sent."""
        place, self._place = self.place, UnsentMessage()
        chips = self._active.parts.dock.chips
        place.attached[:0], chips.images, place.is_sent = chips.images, (), True
        return place

    async def _add(self, conversation: Conversation, place: UnsentMessage, attachment: Attachment) -> None:
        active = self._active
        if place.is_sent:
            place.attached.append(attachment)
            return
        async with active.changing:
            chips, departures = active.parts.dock.chips, active.drafts.departures
            if conversation is not active.conversation:
                active.forget_images(conversation.id)
                await active.drafts.add(conversation, Unsent("", (attachment.id,)))
            elif departures.are_waiting:
                departures.give_back(Unsent(""), (attachment,))
            else:
                chips.images = (*chips.images, attachment)


@asynccontextmanager
async def _under_way(place: UnsentMessage) -> AsyncGenerator[None]:
    place.under_way += 1
    place.settled.clear()
    try:
        yield
    finally:
        place.under_way -= 1
        if not place.under_way:
            place.settled.set()


async def images_of(place: UnsentMessage) -> tuple[Attachment, ...]:
    """The images of a message that is sent, once they are read; those that take longer than `LONGEST` stay behind."""
    try:
        async with asyncio.timeout(LONGEST):
            await place.settled.wait()
    except TimeoutError:
        place.is_sent = False
    return tuple(place.attached)


async def give_back(
    active: ActiveConversation, conversation: Conversation | None, text: str, images: Sequence[Attachment] = ()
) -> bool:
    """Put a text before the one written since; True if that is in the composer.

    Decided while no other conversation comes into view: the composer would belong to that one.
    """
    with active.in_flight.one():  # a conversation without anything else stays until it has this
        async with active.changing:
            if conversation is None or conversation is active.conversation:
                dock, departures = active.parts.dock, active.drafts.departures
                if departures.are_waiting:  # the composer belongs to a conversation that comes next
                    departures.give_back(Unsent(text), images)
                    return False
                dock.composer.give_back(text)
                dock.chips.images = (*images, *dock.chips.images)
                return True
            active.forget_images(conversation.id)
            await active.drafts.add(conversation, Unsent(text, tuple(image.id for image in images)))
            return False


LEAST_ROWS: Final = 10
AROUND: Final = 3
"""Rows of title, rule and composer."""


def terminal_size(view: Widget) -> TerminalSize:
    """Rows as high as the transcript and as wide as output in it; before it is shown, those of its place."""
    size = view.size
    if not size.width and isinstance(view.parent, Widget):
        size = Size(view.parent.size.width, view.parent.size.height - AROUND)
    columns = column(size.width - RIGHT_MARGIN) - MARGIN - len(BAR.text)
    return TerminalSize(min(max(size.height, LEAST_ROWS), MOST_ROWS), columns)


def fit_running_line(active: ActiveConversation, view: Widget) -> None:
    """Tell the line that runs in this transcript of another size; one that is hidden keeps its size."""
    conversation = active.beside.conversation_of(view, active.conversation)
    if view.size.width and conversation is not None and conversation.terminal.modes is not None:
        conversation.terminal.fit(terminal_size(view))


REQUEST_FIRST: Final = 0.05
"""Seconds that the emptied draft of a sent message waits: writing it would delay request and first word."""


BUSY_ENTER: Final = {"queue": Delivery.IDLE, "steer": Delivery.TOOL}
"""Enter while the agent works, by the setting `busy_enter`; any other value refuses."""
LINE_SOON: Final = 1.0
"""Seconds in which a line that was taken has begun to run, or waits behind a run."""
LOOKS_FOR_LINE: Final = 20
SHOWN_OF_HINT: Final = 200
"""Characters of a hint in the row about it."""


class Sending:
    """Sends messages, commands of the user and images; a refused text returns to the composer."""

    def __init__(self, active: ActiveConversation, toasts: Notifier) -> None:
        self._active = active
        self._toasts = toasts
        self.attaching = Attaching(active, toasts)
        self.refusal = BusyRefusal(active)
        self._calls = 0
        """Messages being sent that call a skill or command, maybe with shell lines."""
        self.agrees: Callable[[NeedsYes], Awaitable[bool]] = _never
        """Asks the user about a call of a skill or command; set with the sheets."""

    async def send(self, text: str, *, interrupt: bool = False, queue: bool = False, steer: bool = False) -> None:
        """Send or queue a message, with `steer` for the running turn; a refused text returns to the composer."""
        active = self._active
        place = self.attaching.take()  # what is attached from now on belongs to the next message
        attached: tuple[Attachment, ...] = tuple(place.attached)
        has_ended = False
        conversation: Conversation | None = None
        self._calls += text.startswith("/")
        try:
            waits = active.services.engine.waits
            with active.in_flight.one() as stopped, waiting_words(active.parts.dock, text, waits):
                conversation = await active.current()
                attached = await images_of(place)
                images = tuple(image.id for image in attached)
                ask = conversation.interrupt_and_say if interrupt else conversation.say
                chosen = self._busy_delivery(conversation)
                if queue or (chosen is not None and not interrupt):
                    delivery = Delivery.TOOL if steer else Delivery.IDLE if queue or chosen is None else chosen
                    ask = partial(conversation.queue.add, delivery=delivery)
                has_ended = isinstance(conversation.state, Completed | Failed)
                if conversation.record.agent is not None:
                    ask = Hinting(active.services.engine, conversation.id).say
                receipt: Receipt = await ask(text, images, caps := caps_for(active, conversation))
                if isinstance(receipt, NeedsYes) and not stopped.is_set() and await self.agrees(receipt):
                    receipt = await ask(text, images, replace(caps, agreed=receipt.key))
                if stopped.is_set():
                    stop_in_view(active.services.engine, conversation)
        except ENGINE_ERRORS as error:
            receipt = Refused(str(error))
        except Exception:
            await give_back(active, conversation, text, attached)
            raise
        finally:
            self._calls -= text.startswith("/")
        let_keys_in()
        if isinstance(receipt, Refused):
            in_view = await self._return_refused(conversation, text, receipt.reason, attached)
            if in_view and attached and active.conversation is not None and not is_busy(active.conversation.state):
                active.parts.dock.chips.trouble = receipt.reason
            return
        in_view = conversation is active.conversation
        if in_view and conversation is not None and conversation.record.agent is not None:
            # Until it is read no message of the transcript contains it.
            words = one_line(clean_line(text), SHOWN_OF_HINT)
            starts = "this sub-agent starts again with your hint, its result stays"
            told = starts if has_ended else "your hint will be read with the next step"
            active.parts.transcript.apply(Noticed(f"{told}: {words}"))
        await self._finish_sent(text, in_view=in_view)

    def _busy_delivery(self, conversation: Conversation) -> Delivery | None:
        """Delivery of what Enter sends while the agent works; None where it is sent now, or refused."""
        if not is_busy(conversation.state):
            return None
        chosen = BUSY_ENTER.get(self._active.busy_enter)
        return Delivery.IDLE if self.refusal.queues(conversation) and chosen is None else chosen

    async def shell(self, line: str, *, now: bool = False) -> None:
        """Run the user's own command, after the current run, or `now` in its place."""
        active = self._active
        conversation: Conversation | None = None
        try:
            with active.in_flight.one() as stopped:
                conversation = await active.current()
                conversation.terminal.fit(terminal_size(active.parts.transcript))
                receipt: Receipt = await _run_line(conversation, line, now=now)
                if stopped.is_set():
                    stop_in_view(active.services.engine, conversation)
        except ENGINE_ERRORS as error:
            receipt = Refused(str(error))
        except Exception:
            await give_back(active, conversation, line)
            raise
        if isinstance(receipt, Refused):
            await self._return_refused(conversation, line, receipt.reason)
        else:
            await self._finish_sent(line, in_view=conversation is active.conversation)

    async def line_runs(self) -> None:
        """Wait for the user's line that was sent before: until it runs in its terminal, or waits behind a run."""
        active, looks = self._active, 0
        with keys_wait():
            while looks < LOOKS_FOR_LINE:
                await active.settle()
                conversation = active.conversation
                if not active.in_flight.waiting:  # it was taken
                    if conversation is None or not is_busy(conversation.state) or conversation.terminal.modes:
                        return
                    looks += 1
                await asyncio.sleep(LINE_SOON / LOOKS_FOR_LINE)

    async def _return_refused(
        self, conversation: Conversation | None, text: str, reason: str, images: Sequence[Attachment] = ()
    ) -> bool:
        """Give a message back and say why; True where its conversation is in view."""
        in_view = await give_back(self._active, conversation, text, images)
        if in_view and reason == BUSY:
            self.refusal.begin(conversation)
        elif in_view or conversation is None:
            self._toasts.tell(reason, bad=True)
        else:
            title = clean_line(conversation.record.title) or "the new conversation"
            self._toasts.tell(f"{title}: {reason} The message is kept as its draft.", bad=True)
        return in_view

    async def _finish_sent(self, text: str, *, in_view: bool) -> None:
        if not in_view:
            return
        composer = self._active.parts.dock.composer
        self._active.drafts.note_sent()
        if trouble := remember(composer.draft.prompts, text):  # at once: a user who quits with the next key finds it
            self._toasts.tell(trouble, bad=True)
        await asyncio.sleep(REQUEST_FIRST)
        await self._active.drafts.keep()

    async def answer(self, call_id: str, answer: ApprovalAnswer) -> None:
        """Answer the question in view: the conversation's own, or that of one of its sub-agents.

        A reason that came too late goes into the composer: it is no message before it is sent.
        """
        active, conversation = self._active, self._active.conversation
        if conversation is None:
            return
        try:
            receipt = await find_asker(active.services.engine, conversation, call_id).answer(call_id, answer)
        except ENGINE_ERRORS as error:
            receipt = Refused(str(error))
        if isinstance(receipt, Refused):
            self._toasts.tell(receipt.reason, bad=True)
            if answer.reason:
                await give_back(active, conversation, answer.reason)

    @property
    def may_stop(self) -> bool:
        """True while something runs in view, or was sent and is not accepted yet; an error counts until it is
        dismissed.
        """
        active = self._active
        engine = active.services.engine
        return active.in_flight.waiting or runs_in_view(engine, active.conversation) or bool(engine.waits.seconds)

    def stop(self) -> bool:
        """Cancel the run in view with its sub-agents, or dismiss its error; False when there was neither.

        A message being sent is stopped as soon as it is accepted.
        """
        gave_up, was_in_flight = self._active.services.engine.waits.give_up(), self._active.in_flight.stop()
        if self._calls and self._active.conversation is not None:
            self._active.conversation.cancel()  # its shell lines, before there is a run
        return stop_in_view(self._active.services.engine, self._active.conversation) or was_in_flight or gave_up

    def let_go(self) -> None:
        """Send the command that runs in view to the background, at once: an Esc right behind finds it there."""
        self._toasts.tell(send_to_background(self._active.conversation))

    async def resume(self, *, interrupted: bool) -> None:
        """Enter on an empty line: retry after an error, or resume where a restart cut the turn off."""
        conversation = self._active.conversation
        if conversation is None:
            return
        if isinstance(conversation.state, Errored) or (isinstance(conversation.state, Idle) and interrupted):
            await self._active.attempt(lambda one: one.retry(caps_for(self._active, one)))
        if conversation.queue.waiting:
            await self._active.attempt(lambda one: one.queue.go_on(caps_for(self._active, one)))


async def _never(_: NeedsYes) -> bool:
    """Agree to nothing: there is nothing to ask with yet."""
    return False


async def _run_line(conversation: Conversation, line: str, *, now: bool) -> Receipt:
    """Run a line that begins with `!` when idle; else queue it, and `now` stop the run for it."""
    if not is_busy(conversation.state):
        return await conversation.shell(*shell_line(line))
    queue = conversation.queue
    receipt = await queue.add(line, is_shell=True)
    if now and isinstance(receipt, Accepted) and queue.waiting:
        await queue.send_now(queue.waiting[-1].id)
    return receipt
