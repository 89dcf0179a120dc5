"""What is typed, and where it goes: a message, a command, an answer or a stop."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from typing import Final

from engine.api.conversation import ConversationApi
from engine.api.errors import ENGINE_ERRORS
from engine.machine.states import Errored
from engine.updates import Question
from phoenix_tui.commands.catalogue import is_command, split_command
from phoenix_tui.features.prompt_history import PromptHistory, remember
from phoenix_tui.features.rule_changes import RuleChanges
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.lifecycle.launch import Launch, Services
from phoenix_tui.lifecycle.loop_watchdog import LoopWatch
from phoenix_tui.lifecycle.memory_limit import NO_LIMIT, MemoryLimit
from phoenix_tui.lifecycle.stop_signals import ENDING, SIGNAL_EXIT, listen
from phoenix_tui.linear.approving import OthersAsk, answer_of
from phoenix_tui.linear.attaching import attach_all, attach_dropped
from phoenix_tui.linear.commands import run_linear
from phoenix_tui.linear.editing import LeaveTyped, StopWanted, Typed
from phoenix_tui.linear.queueing import queue_up
from phoenix_tui.linear.side_questions import SpokenSideQuestions
from phoenix_tui.linear.spoken import said
from phoenix_tui.linear.talk import LinearConversation
from phoenix_tui.linear.terminal import LineTerminal
from phoenix_tui.text.database_text import WAITING, told_here, told_once
from tools.clean import clean_line
from tools.process.link import ZygoteLink

SAY_PROMPT: Final = "You: "
ANSWER_PROMPT: Final = "Answer: "
AGAIN: Final = 3.0
"""Seconds within which a second Ctrl+C leaves."""
LAST_MESSAGES: Final = 2
"""Messages read out when a conversation is opened."""


class LinearFront:
    """Phoenix in lines, over the same engine that the screen has."""

    def __init__(
        self,
        services: Services,
        launch: Launch,
        terminal: LineTerminal,
        link: ZygoteLink | None = None,
        limit: MemoryLimit = NO_LIMIT,
    ) -> None:
        self.link = link
        """Where it is, it sees signals that the loop does not take."""
        self.limit = limit
        """Of this process's memory."""
        self._watch: LoopWatch | None = None
        self.services = services
        self.launch = launch
        self.terminal = terminal
        rings = launch.notifications != "off"
        self.talk = LinearConversation(
            services, launch, self.say, self.invite, terminal.ring if rings else lambda: None
        )
        self._others = OthersAsk(self)
        self.beside = SpokenSideQuestions(self)
        self.rule_changes = RuleChanges(services.engine.rules, lambda: "/rules undo brings it back")
        self.history = PromptHistory(launch.state_folder, launch.cwd)
        self.leaving: int | None = None
        """The exit code, once the user or a signal wants to leave."""
        self.last_conversation = ""
        """Known once it was left; empty where nothing was said."""
        self._interrupted = float("-inf")
        self._asking = False
        """Whether a line is asked for that is neither message nor answer."""

    def say(self, *lines: str) -> None:
        """Append lines."""
        self.terminal.say(*lines)

    def invite(self) -> None:
        """The prompt, since something is expected of the user."""
        if not self._asking:
            self.terminal.prompt = ANSWER_PROMPT if self.talk.question is not None else SAY_PROMPT
            self.terminal.show_prompt()

    async def run(self) -> int:
        """Until the user leaves; gives the exit code."""
        ticking = asyncio.create_task(self._tick())
        unwatch = self.services.engine.watch(self._others.follow)
        told = told_here(told_once(self.say, f"{WAITING} Ctrl+C gives up."))
        unlisten = self.services.engine.waits.listen(told)
        self._listen_to_signals()
        with self.terminal.listening():
            try:
                await self._begin()
                while self.leaving is None:
                    if not self.terminal.keyboard.is_terminal:  # the lines of a pipe are taken one after the other
                        await self.talk.rested.wait()
                    if self.talk.rested.is_set():
                        self.invite()
                    await self._do_next()
            finally:
                unlisten()
                ticking.cancel()
                unwatch()
                await self.beside.close()
                self.last_conversation = self._way_back()
                await self.talk.put_away(self.terminal.line.text)
        return self.leaving or 0

    def _end(self, number: signal.Signals) -> None:
        if self._watch is not None:
            self._watch.end_begins()
        self.leave(SIGNAL_EXIT + number)

    def stop_watching(self) -> str:
        """All is closed; why that was, where it was for its memory."""
        if self._watch is None:
            return ""
        self._watch.stop()
        return self._watch.last_words

    def _way_back(self) -> str:
        conversation = self.talk.conversation
        return conversation.id if conversation is not None and conversation.record.message_count else ""

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        listen(loop, ENDING, self._end)
        if self.link is not None:
            self.link.arm(ENDING)
            self._watch = LoopWatch(self.link, self.limit, lambda words: self.say(f"Note: {words}"))
        loop.add_signal_handler(signal.SIGINT, self.interrupt)
        loop.add_signal_handler(signal.SIGCONT, self.terminal.resume)

    async def _begin(self) -> None:
        launch = self.launch
        self.terminal.line.history = self.history
        self.say(
            f"Model {clean_line(launch.model)}. Folder {clean_line(str(launch.cwd))}. Mode {self.talk.mode.value}."
        )
        self.say("Write and press Enter. Esc or Ctrl+C stops. /help lists the commands. Ctrl+D leaves.")
        if self.services.warning:
            self.say(f"Note: {clean_line(self.services.warning)}")
        if launch.conversation_id:
            await self.talk.attempt(self.open(launch.conversation_id))
        if launch.pick:
            await self.talk.attempt(run_linear(self, "resume", ""))
        if launch.images:
            await attach_all(self, launch.images)
        if launch.prompt:
            self.say(*said("You", launch.prompt))
            await self.talk.send(launch.prompt)

    async def open(self, conversation_id: str) -> None:
        """Go on with another conversation; its draft stands in the line. Raises EngineError."""
        draft = await self.talk.open(await self.services.engine.open(conversation_id), LAST_MESSAGES)
        if draft:
            self.invite()
            self.terminal.put(draft)

    async def _do_next(self) -> None:
        match await self.terminal.next_wish():
            case Typed(text=text):
                await self._line(text)
            case StopWanted():
                if self.leaving is None and not self.talk.stop():
                    self.say("Dropped." if self.beside.drop() else "Nothing runs.")
            case LeaveTyped():
                self.leave(0)

    async def _line(self, text: str) -> None:
        talk, question = self.talk, self.talk.question
        try:
            if is_command(text):
                name, argument = split_command(text)
                await run_linear(self, name, argument)
            elif question is not None and text.strip():
                await self._answer(question, text.strip())
            elif text.startswith("!") and text.strip("! \n"):
                conversation = await talk.current()
                await talk.attempt(conversation.shell(text.lstrip("!").strip(), not text.startswith("!!")))
            elif text.strip() and not await attach_dropped(self, text):
                await self._send(text)
            elif not text.strip() and talk.conversation is not None:
                await self._go_on(talk.conversation)
        except ENGINE_ERRORS as error:
            self.say(f"Refused: {clean_line(str(error))}")

    async def _go_on(self, conversation: ConversationApi) -> None:
        """Enter on an empty line: try again after an error, send what waits for the user, or images alone."""
        if isinstance(conversation.state, Errored):
            await self.talk.attempt(conversation.retry(caps_for(self, conversation)))
        elif conversation.queue.held and conversation.queue.waiting:
            await self.talk.attempt(conversation.queue.go_on(caps_for(self, conversation)))
        elif self.talk.images and not self.talk.busy:
            await self.talk.send("")

    async def _send(self, text: str) -> None:
        if self.talk.busy:
            await queue_up(self, text)
        else:
            await self.talk.send(text)
        if trouble := remember(self.history, text):
            self.say(f"Note: {trouble}")

    async def _answer(self, question: Question, text: str) -> None:
        answer = await answer_of(self, question, text)
        if answer is None:
            self.say("A question is open: answer with one of its letters and press Enter. Esc stops the run.")
        else:
            await self.talk.answer(question, answer)

    async def ask_line(self, prompt: str, text: str = "") -> str:
        """One line, with `text` to be changed; empty for Esc."""
        self.terminal.prompt = prompt
        self.terminal.show_prompt()
        self._asking = True
        if text:
            self.terminal.put(text)
        wish = await self.terminal.next_wish()
        self._asking = False
        if isinstance(wish, LeaveTyped):
            self.leave(0)
        return wish.text.strip() if isinstance(wish, Typed) else ""

    async def choose(self, heading: str, rows: Sequence[str]) -> int | None:
        """The place of the row whose number is typed; None for anything else."""
        self.say(heading, *(f"{number}. {clean_line(row)}" for number, row in enumerate(rows, 1)))
        text = await self.ask_line("Number, or Enter for none: ")
        return int(text) - 1 if text.isdecimal() and 1 <= int(text) <= len(rows) else None

    def interrupt(self) -> None:
        """Ctrl+C: stop the run, else leave at the second press."""
        if self.talk.busy and self.talk.stop():
            return
        now = time.monotonic()
        if now - self._interrupted < AGAIN:
            self.leave(0)
        else:
            self._interrupted = now
            self.say("Press Ctrl+C again to leave.")
            self.terminal.show_prompt()

    def leave(self, code: int) -> None:
        """End the front end."""
        self.leaving = code
        self.beside.drop()
        self.terminal.wake()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.talk.still()
            self.terminal.tick()
