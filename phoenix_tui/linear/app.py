"""Dispatch of typed lines: a message, a command, an answer or a stop. A command's module is loaded
with its first use.
"""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING, Final

from engine.executor.requests import ENGINE_ERRORS, ApprovalAnswer, ApprovalChoice
from engine.machine.states import Errored
from engine.run_options import Effort
from engine.updates import Question
from phoenix_tui.features.catalogue import (
    LINE_COMMANDS,
    SlashCommand,
    is_command,
    split_command,
)
from phoenix_tui.features.composing import remember
from phoenix_tui.features.custom_commands import is_custom, question
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.features.tabs import find_tab, tabs_of, title_of
from phoenix_tui.features.trust import AFTER_A_PROMPT, SourceWatch
from phoenix_tui.lifecycle.launch import Launch, Services
from phoenix_tui.lifecycle.stop_signals import END_SIGNALS, SIGNAL_EXIT, handle, listen
from phoenix_tui.lifecycle.threads import load
from phoenix_tui.lifecycle.watchdogs import NO_LIMIT, LoopWatch, MemoryLimit
from phoenix_tui.linear.line_buffer import LeaveTyped, LineTyped, StopWanted
from phoenix_tui.linear.line_context import LinearContext, LineCommand
from phoenix_tui.linear.messages import attach_all, attach_dropped, queue_up
from phoenix_tui.linear.question_lines import takes_line
from phoenix_tui.linear.terminal import LineTerminal
from phoenix_tui.linear.transcript import YOU, message_lines
from phoenix_tui.linear.work import ApprovalNotifier, answer_of, edit_wanted
from phoenix_tui.text.server_text import WAITING, on_this_loop, say_once
from tools.clean import clean_line
from tools.comparing import near_names
from tools.process.link import ZygoteLink

if TYPE_CHECKING:
    from engine.conversation import Conversation


async def run_command(ctx: LinearContext, name: str, argument: str) -> None:
    """Do it; an unknown name is answered with the nearest one. Raises EngineError."""
    command = LINE_COMMANDS.get(name)
    if command is None:
        near = near_names(name, LINE_COMMANDS, 1, 0.5)
        ctx.say(f"There is no /{name}.{f' Did you mean /{near[0]}?' if near else ' /help lists all.'}")
        return
    found = find_tab(name, argument)
    if found is not None:
        group, tab = found
        command = LINE_COMMANDS[tab] if tab else await choose_tab(ctx, group)
        argument = ""
    if command is None:
        return
    module, function = command.locate("linear")
    run: LineCommand = getattr(await load(module), function)
    await run(ctx, argument)


async def choose_tab(ctx: LinearContext, group: str) -> SlashCommand | None:
    """Ask for one of the sheets of a command by its number."""
    tabs = tabs_of(group)
    chosen = await ctx.choose(f"/{group}:", [f"{title_of(tab, ctx)}: {tab.in_lines or tab.meaning}" for tab in tabs])
    return tabs[chosen] if chosen is not None else None


AGAIN: Final = 3.0
"""Seconds within which a second Ctrl+C leaves."""


class LinearApp:
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
        """Link to the zygote, which sees signals that the loop does not handle; None without one."""
        self.limit = limit
        """Limit of this process's memory."""
        self._watch: LoopWatch | None = None
        self.ctx = LinearContext(services, launch, terminal)
        self.ctx.active.agrees = lambda needs: self.ctx.confirm(question(needs), "send it", "do not")
        self._notifier = ApprovalNotifier(self.ctx)
        self._sources = SourceWatch(self.ctx)
        self.last_conversation = ""
        """Id of the conversation left last; empty for an empty one."""
        self._interrupted = float("-inf")

    async def run(self) -> int:
        """Run until the user leaves; returns the exit code."""
        ticking = asyncio.create_task(self._tick())
        unwatch = self.ctx.services.engine.watch(self._notifier.follow)
        self._sources.look(self.ctx.launch.cwd, AFTER_A_PROMPT)
        unwatch_sources = self.ctx.services.engine.watch(self._sources.note_activity)
        told = on_this_loop(say_once(self.ctx.say, f"{WAITING} Ctrl+C cancels."))
        unlisten = self.ctx.services.engine.waits.listen(told)
        self._listen_to_signals()
        with self.ctx.terminal.listening():
            try:
                await self._begin()
                while self.ctx.leaving is None:
                    if not self.ctx.terminal.keyboard.is_terminal:  # the lines of a pipe are taken one by one
                        await self.ctx.active.rested.wait()
                    if self.ctx.active.rested.is_set():
                        self.ctx.active.invite()
                    await self._do_next()
            finally:
                unlisten()
                ticking.cancel()
                unwatch()
                unwatch_sources()
                self._sources.close()
                await self.ctx.side_questions.close()
                conversation = self.ctx.active.conversation
                if conversation is not None and conversation.record.message_count:
                    self.last_conversation = conversation.id
                await self.ctx.active.put_away(self.ctx.terminal.line.text)
        return self.ctx.leaving or 0

    def _end(self, number: signal.Signals) -> None:
        if self._watch is not None:
            self._watch.end_begins()
        self.ctx.leave(SIGNAL_EXIT + number)

    def stop_watching(self) -> str:
        """All is closed; why that was, where it was for its memory."""
        if self._watch is None:
            return ""
        self._watch.stop()
        return self._watch.last_words

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        listen(loop, END_SIGNALS, self._end)
        if self.link is not None:
            self.link.arm(END_SIGNALS)
            self._watch = LoopWatch(self.link, self.limit, lambda words: self.ctx.say(f"Note: {words}"))
        handle(loop, signal.SIGINT, self.interrupt)
        handle(loop, signal.SIGCONT, self.ctx.terminal.resume)

    async def _begin(self) -> None:
        launch = self.ctx.launch
        self.ctx.terminal.line.history = self.ctx.history
        folder, mode = clean_line(str(launch.cwd)), self.ctx.mode.value
        effort = "" if launch.effort is Effort.DEFAULT else f", effort {launch.effort.value}"
        self.ctx.say(f"Model {clean_line(launch.model)}{effort}. Folder {folder}. Mode {mode}.")
        self.ctx.say("Type a message and press Enter. Esc or Ctrl+C stops. /help lists the commands. Ctrl+D quits.")
        if self.ctx.services.warning:
            self.ctx.say(f"Note: {clean_line(self.ctx.services.warning)}")
        if launch.conversation_id:
            await self.ctx.active.attempt(self.ctx.open(launch.conversation_id))
        if launch.pick:
            await self.ctx.active.attempt(run_command(self.ctx, "resume", ""))
        if launch.images:
            await attach_all(self.ctx, launch.images)
        if launch.prompt:
            self.ctx.say(*message_lines(YOU, launch.prompt))
            await self.ctx.active.send(launch.prompt)

    async def _do_next(self) -> None:
        match await self.ctx.terminal.next_request():
            case LineTyped(text=text):
                await self._line(text)
            case StopWanted() if (question := self.ctx.active.question) is not None and question.request.questions:
                left = ApprovalAnswer(ApprovalChoice.DENY, is_left=bool(question.server))
                await self.ctx.active.answer(question, left)
            case StopWanted():
                if self.ctx.leaving is None and not self.ctx.active.stop():
                    self.ctx.say("Dropped." if self.ctx.side_questions.drop() else "Nothing is running.")
            case LeaveTyped():
                self.ctx.leave(0)

    async def _line(self, text: str) -> None:
        active, question = self.ctx.active, self.ctx.active.question
        try:
            if is_command(text) and not await self._is_custom(text):
                name, argument = split_command(text)
                await run_command(self.ctx, name, argument)
            elif question is not None and text.strip() and takes_line(question, text.strip()):
                await self._answer(question, text.strip())
            elif text.startswith("!") and text.strip("! \n"):
                conversation = await active.current()
                await active.attempt(conversation.shell(text.lstrip("!").strip(), not text.startswith("!!")))
            elif text.strip() and not await attach_dropped(self.ctx, text):
                if self.ctx.active.busy:
                    await queue_up(self.ctx, text)
                else:
                    await self.ctx.active.send(text)
                if trouble := remember(self.ctx.history, text):
                    self.ctx.say(f"Note: {trouble}")
            elif not text.strip() and active.conversation is not None:
                await self._go_on(active.conversation)
        except ENGINE_ERRORS as error:
            self.ctx.say(f"Refused: {clean_line(str(error))}")

    async def _is_custom(self, text: str) -> bool:
        """True for the call of a skill or command file; a command of the lines comes before it."""
        name, _ = split_command(text)
        conversation = self.ctx.active.conversation
        folder = conversation.record.cwd if conversation is not None else self.ctx.launch.cwd
        return name not in LINE_COMMANDS and await is_custom(self.ctx.services.invocables, folder, text)

    async def _go_on(self, conversation: Conversation) -> None:
        """Enter on an empty line: retry after an error, send the held queue, or images alone."""
        if isinstance(conversation.state, Errored):
            await self.ctx.active.attempt(conversation.retry(caps_for(self.ctx, conversation)))
        elif conversation.queue.held and conversation.queue.waiting:
            await self.ctx.active.attempt(conversation.queue.go_on(caps_for(self.ctx, conversation)))
        elif self.ctx.active.images and not self.ctx.active.busy:
            await self.ctx.active.send("")

    async def _answer(self, question: Question, text: str) -> None:
        if await edit_wanted(self.ctx, question, text):
            return
        answer = await answer_of(self.ctx, question, text)
        if answer is None:
            self.ctx.say("A question is open. Type one of its letters and press Enter. Esc stops the run.")
        else:
            await self.ctx.active.answer(question, answer)

    def interrupt(self) -> None:
        """Ctrl+C: stop the run, or what a message waits for; else leave at the second press."""
        if (self.ctx.active.busy and self.ctx.active.stop()) or self.ctx.active.stop_sending():
            return
        now = time.monotonic()
        if now - self._interrupted < AGAIN:
            self.ctx.leave(0)
        else:
            self._interrupted = now
            self.ctx.say("Press Ctrl+C again to quit.")
            self.ctx.terminal.show_prompt()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.ctx.active.still()
            self.ctx.terminal.tick()
