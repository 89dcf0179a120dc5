"""The conversation in front of the user: its requests, and its updates as lines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.executor.requests import ENGINE_ERRORS, ApprovalAnswer, NeedsYes, Receipt, Refused
from engine.machine.states import is_busy
from engine.ports import ConversationChanges
from engine.records import NEWEST, Attachment, PermissionMode
from engine.run_options import Effort
from engine.updates import (
    AgentsChanged,
    ApprovalAsked,
    ConversationChanged,
    MessageSaved,
    Question,
    RunEnded,
    Snapshot,
    StateChanged,
    Unsubscribe,
    Update,
)
from phoenix_tui.features.agents import asking, find_asker, stop_in_view
from phoenix_tui.features.composing import join_draft, parse_draft
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.lifecycle.launch import Launch, Services
from phoenix_tui.linear.question_lines import ChangedPlans, question_lines
from phoenix_tui.linear.terminal import LineTerminal
from phoenix_tui.linear.transcript import LinearTranscript, message_lines, message_text, speaker
from phoenix_tui.text.labels import WRITABLE, clock
from tools.call_titles import tool_label
from tools.clean import clean, clean_line
from tools.contract import SandboxMode
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation

SAY_PROMPT: Final = "You: "
ANSWER_PROMPT: Final = "Answer: "
RING_FROM: Final = 5.0
"""Seconds of work after which its end rings."""
STILL_EVERY: Final = 30.0
"""Seconds between two remarks that the work continues."""
ROWS_A_MESSAGE: Final = 8
"""Stored messages looked through for each one that has words: tools leave many without."""


async def _never(_: NeedsYes) -> bool:
    """Agree to nothing: there is no way to ask yet."""
    return False


class LinearConversation:
    """One conversation at a time; the others run on."""

    def __init__(self, services: Services, launch: Launch, terminal: LineTerminal) -> None:
        self.services = services
        self.launch = launch
        self.terminal = terminal
        self.model = launch.model
        """Model of the next new conversation."""
        self.mode: PermissionMode = launch.permission_mode
        self.sandbox: SandboxMode | None = None
        """Mode and chosen sandbox of a conversation that is still empty; the one after it begins as `launch` says."""
        self.conversation: Conversation | None = None
        self.transcript = LinearTranscript()
        self.images: list[Attachment] = []
        """Images for the next message."""
        self.plans = ChangedPlans()
        self.agrees: Callable[[NeedsYes], Awaitable[bool]] = _never
        """Asks the user about a call of a skill or command."""
        self.rested = asyncio.Event()
        """Set while nothing runs and no question is open."""
        self.rested.set()
        self._unsubscribe: Unsubscribe | None = None
        self._began = self._told = 0.0
        self._asked: tuple[str, str] | None = None
        """Sub-agent and call of its last reported question."""
        self._held = ""
        """Last reported reason why the conversation was read-only."""
        self._sending: Conversation | None = None
        """The conversation that a message is being sent to."""
        self._early: list[Update] | None = None
        """Updates while a message of ours is being sent: its id is not known yet."""

    @property
    def question(self) -> Question | None:
        """Open question: the conversation's own, else the oldest of its sub-agents."""
        if self.conversation is None or self.conversation.question is not None:
            return self.conversation.question if self.conversation is not None else None
        return next((one.question for one in asking(self.services.engine, self.conversation.id)), None)

    @property
    def busy(self) -> bool:
        """True while a run is in progress."""
        return self.conversation is not None and is_busy(self.conversation.state)

    def say(self, *lines: str) -> None:
        """Append lines."""
        self.terminal.say(*lines)

    def invite(self) -> None:
        """Show the prompt: something is expected of the user."""
        self.terminal.invite(ANSWER_PROMPT if self.question is not None else SAY_PROMPT)

    async def attempt(self, request: Awaitable[object]) -> bool:
        """Wait for a request of the engine and print a refusal; returns True when it was done."""
        try:
            outcome = await request
        except ENGINE_ERRORS as error:
            outcome = Refused(str(error))
        if isinstance(outcome, Refused):
            self.say(f"Refused: {clean_line(outcome.reason)}")
        return not isinstance(outcome, Refused)

    async def current(self) -> Conversation:
        """The open conversation, created now if there is none. Raises EngineError."""
        if self.conversation is not None:
            return self.conversation
        conversation = await self.services.engine.create(self.launch.options(self.model, self.mode, self.sandbox))
        self._reset()
        await self._attend(conversation)
        return conversation

    async def open(self, conversation: Conversation, last: int) -> str:
        """Follow this conversation from now on and read out its `last` messages; returns the text of its draft."""
        await self.put_away("")
        record = conversation.record
        title = clean_line(record.title) or "new conversation"
        effort = "" if record.effort is Effort.DEFAULT else f", effort {record.effort.value}"
        self.say(
            f"Conversation: {title}. {pluralize(record.message_count, 'message')}. "
            f"Model {clean_line(record.model)}{effort}. "
            f"Mode {record.permission_mode.value}, sandbox {record.sandbox.value}."
        )
        if conversation.read_only:
            self.say(f"Read-only: {clean_line(conversation.read_only)}")
        await self._attend(conversation)
        if not conversation.read_only and record.agent is None:
            await self.attempt(conversation.change(ConversationChanges(unread=False)))
        await self.read(last)
        draft = parse_draft(record.draft)
        self.images = list(await self.services.engine.attachments(draft.image_ids)) if draft.image_ids else []
        if self.images:
            self.say(f"{pluralize(len(self.images), 'image')} attached to the next message; /images shows them.")
        return draft.text

    async def _attend(self, conversation: Conversation) -> None:
        self.conversation, self.transcript = conversation, LinearTranscript(title=conversation.record.title)
        self._held = conversation.read_only
        self._unsubscribe = await conversation.subscribe(self._follow)

    async def put_away(self, draft: str) -> None:
        """Follow no longer; a half-typed line stays as the draft."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        conversation, self.conversation = self.conversation, None
        self._reset()
        draft = join_draft(draft, [image.id for image in self.images])
        self.images = []
        self._began = 0.0
        self.rested.set()
        if conversation is not None and not conversation.read_only and draft != conversation.record.draft:
            await self.attempt(conversation.change(ConversationChanges(draft=draft)))

    def _reset(self) -> None:
        self.mode, self.sandbox = self.launch.permission_mode, None

    async def read(self, number: int) -> None:
        """Read out the last messages that have words."""
        if self.conversation is None:
            return
        found = await self.conversation.history(NEWEST, number * ROWS_A_MESSAGE)
        spoken = [message for message in found.messages if message_text(message).strip()]
        for message in spoken[-number:]:
            self.say(*message_lines(speaker(message), message_text(message)))

    async def read_at(self, seq: int) -> None:
        """Read out one message, whole."""
        found = await self.conversation.history(seq + 1, 1) if self.conversation is not None else None
        for message in found.messages if found is not None else ():
            calls = {call.tool_use_id: call for call in found.tool_calls} if found is not None else {}
            text = message_text(message).strip()
            self.say(*(message_lines(speaker(message), text) if text else ()))
            for call in calls.values():
                self.say(
                    f"Tool {clean_line(tool_label(call.name))}: {clean_line(call.input_json)}",
                    *clean(call.output_text).splitlines(),
                )

    async def send(self, text: str, *, interrupt: bool = False) -> bool:
        """Send a message; whether it was taken."""
        self._early = []
        try:
            conversation = await self.current()
            ask = conversation.interrupt_and_say if interrupt else conversation.say
            caps = caps_for(self, conversation)
            images = [image.id for image in self.images]
            receipt = await self._stoppable(conversation, ask(text, images, caps))
            if isinstance(receipt, NeedsYes) and await self.agrees(receipt):
                receipt = await self._stoppable(conversation, ask(text, images, replace(caps, agreed=receipt.key)))
        except ENGINE_ERRORS as error:
            receipt = Refused(str(error))
        if isinstance(receipt, Refused):
            self.say(f"Refused: {clean_line(receipt.reason)} Up recalls your text.")
        else:
            self.transcript.own.add(receipt.message_id)
            self.images.clear()
        early, self._early = self._early, None
        for update in early:
            self._follow(update)
        return not isinstance(receipt, Refused)

    async def _stoppable(self, conversation: Conversation, asked: Awaitable[Receipt]) -> Receipt:
        """Wait for a message to be sent; Esc and Ctrl+C end the hooks and shell lines that it waits for."""
        sending = asyncio.ensure_future(asked)
        stopping = asyncio.ensure_future(self.terminal.stop_typed())
        self._sending = conversation
        try:
            await asyncio.wait((sending, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                self.stop_sending()
            return await sending
        finally:
            self._sending = None
            stopping.cancel()
            sending.cancel()

    def stop_sending(self) -> bool:
        """Stop what a message waits for before it is sent; False where none is being sent."""
        if self._sending is not None:
            self._sending.cancel()
        return self._sending is not None

    async def answer(self, question: Question, answer: ApprovalAnswer) -> None:
        """Answer the open question."""
        if self.conversation is not None:
            asker = find_asker(self.services.engine, self.conversation, question.call.id)
            await self.attempt(asker.answer(question.call.id, answer))

    def stop(self) -> bool:
        """Stop the run with its sub-agents, or put its error away; False where there was neither."""
        gave_up = self.services.engine.waits.give_up()
        return stop_in_view(self.services.engine, self.conversation) or gave_up

    def still(self) -> None:
        """Report now and then that the work continues."""
        now = time.monotonic()
        if self._began and now - self._told >= STILL_EVERY and self.question is None:
            self._told = now
            self.say(f"Still working, {clock(now - self._began)}.")

    def _agents_ask(self) -> None:
        """Say the question of the sub-agent that waits longest, and be ready for the answer; then the next one."""
        conversation = self.conversation
        if conversation is None or conversation.question is not None:
            return
        asker = next(iter(asking(self.services.engine, conversation.id)), None)
        question = asker.question if asker is not None else None
        before, self._asked = self._asked, (asker.id, question.call.id) if asker is not None and question else None
        if question is not None and self._asked != before:
            self.rested.set()
            self.terminal.ring()
            self.say(*question_lines(question, clean_line(question.asker)))
            self.invite()

    def _follow(self, update: Update) -> None:
        if self._early is not None and not isinstance(update, Snapshot):
            self._early.append(update)
            return
        match update:
            case Snapshot(state=state, question=question):
                self.transcript.agents = update.agents
                self._follow_busy(is_busy(state))
                self.say(*(question_lines(self.plans.of(question)) if question is not None else ()))
            case ApprovalAsked(question=question) if question is not None:
                self.rested.set()
                self.terminal.ring()
                self.say(*question_lines(question))
                self.invite()
            case AgentsChanged() | ApprovalAsked():
                self.say(*self.transcript.follow(update))
                self._agents_ask()
            case ConversationChanged():
                self.say(*self._report_owner(), *self.transcript.follow(update))
            case _:
                self.say(*self.transcript.follow(update))
        if isinstance(update, StateChanged):
            self._follow_busy(is_busy(update.state))
        elif isinstance(update, RunEnded) and time.monotonic() - self._began > RING_FROM:
            self.terminal.ring()
        elif isinstance(update, MessageSaved) and update.message.id in self.transcript.own:
            self.transcript.own.discard(update.message.id)

    def _report_owner(self) -> list[str]:
        """Report a change of owner while the conversation is followed."""
        held = self.conversation.read_only if self.conversation is not None else ""
        if held == self._held:
            return []
        self._held = held
        return [f"Read-only: {clean_line(held)}" if held else WRITABLE]

    def _follow_busy(self, busy: bool) -> None:
        now = time.monotonic()
        if busy and not self._began:
            self._began = self._told = now
            self.say("Assistant is working.")
        elif not busy and self._began:
            self.say(f"Ready, after {clock(now - self._began)}.")
            self._began = 0.0
        if busy:
            self.rested.clear()
        elif not self.rested.is_set():
            self.rested.set()
            self.invite()
