"""Context of a slash command of the lines: the open conversation, questions to the user, side questions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from engine.executor.requests import Receipt, Refused
from engine.ports.mcp import SignInAddress
from engine.records import SideExchange
from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.features.context_window import SideAnswer, answer_of, in_one_line
from phoenix_tui.features.front_end import FrontEnd, InView, ListPage, Option, PageAction, PageReader
from phoenix_tui.features.permissions import RuleChanges
from phoenix_tui.lifecycle.launch import Launch, Services
from phoenix_tui.linear.conversation import LinearConversation
from phoenix_tui.linear.line_buffer import LeaveTyped, LineTyped
from phoenix_tui.linear.terminal import LineTerminal
from phoenix_tui.linear.transcript import AnswerLines
from tools.clean import clean, clean_line
from tools.wording import number_within

if TYPE_CHECKING:
    from engine.conversation import Conversation

MOST_LISTED: Final = 20


class LineAsker(FrontEnd):
    """Asks by numbered rows and by single lines."""

    most_options: ClassVar = MOST_LISTED

    def __init__(self, terminal: LineTerminal, in_view: InView) -> None:
        super().__init__(in_view)
        self.terminal = terminal
        self.leaving: int | None = None
        """Exit code, once the user or a signal requests the end."""

    def say(self, *lines: str) -> None:
        """Append lines."""
        self.terminal.say(*lines)

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Append a line for each of a text; `bad` ones say so in their words."""
        self.say(*clean(text).splitlines())

    def confirm_change(self, text: str) -> None:
        """Report the present setting."""
        self.say(clean_line(text))

    def read(self, heading: str, text: str, *, hang: int = 0) -> None:
        """Read out a longer text."""
        self.say(f"{heading}:", *clean(text).splitlines())

    async def review(self, heading: str, text: str) -> None:
        """Read out a longer text; the next question waits behind it."""
        self.read(heading, text)

    def say_outcome(self, outcome: Receipt, done: str) -> None:
        """Say why a request was refused, or these words."""
        self.say(f"Refused: {clean_line(outcome.reason)}" if isinstance(outcome, Refused) else done)

    async def ask(self, prompt: str, text: str = "") -> str:
        """One line behind this prompt, with `text` to be changed; empty for Esc."""
        return (await self.ask_typed(prompt, text) or "").strip()

    async def ask_typed(self, prompt: str, text: str = "") -> str | None:
        """One line as it was typed, with `text` to be changed; None for Esc and the end of the input."""
        request = await self.terminal.ask(prompt, text)
        if isinstance(request, LeaveTyped):
            self.leave(0)
        return request.text if isinstance(request, LineTyped) else None

    async def ask_line(self, heading: str, text: str = "") -> str:
        """One line; empty for Esc."""
        return await self.ask(f"{heading}: ", text)

    async def choose(self, heading: str, rows: Sequence[str]) -> int | None:
        """The place of the row whose number is typed; None for anything else."""
        self.say(heading, *(f"{number}. {clean_line(row)}" for number, row in enumerate(rows, 1)))
        text = await self.ask("Number, or Enter for none: ")
        number = number_within(text, len(rows))
        return number - 1 if number is not None else None

    async def pick(self, heading: str, options: Sequence[Option], *, current: str = "") -> str:
        """The key of the option whose number is typed; empty for anything else."""
        rows = [", ".join((one.words + (" (now)" if one.key == current else ""), *one.facts)) for one in options]
        chosen = await self.choose(f"{heading}:", rows)
        return options[chosen].key if chosen is not None else ""

    async def confirm(self, question: str, yes: str, no: str) -> bool:
        """Ask yes or no; anything but the number of yes is no."""
        return await self.choose(question, (no, yes)) == 1

    async def show(self, read: PageReader, argument: str = "") -> None:
        """Do the action that `argument` names, or offer the rows by number, then the actions of one."""
        page = await read()
        named = next((one for one in page.actions if argument and one.argument == argument), None)
        if named is not None:
            await self._do(named)
            return
        menu = [one for one in page.actions if one.words]
        if not menu:
            self.say(*(clean_line(note) for note in page.notes))
        if not page.rows:
            self.say(page.empty)
        elif menu:
            for section, rows in groupby(page.rows, lambda row: row.section):
                self.say(f"{section}:", *(row.spoken for row in rows))
        else:
            await self._offer_rows(page)
        if menu:
            await self._offer(" ".join(page.notes) or page.menu, menu)

    async def _offer_rows(self, page: ListPage) -> None:
        """Read out the rows without a menu, and do an action of the one whose number is typed."""
        offered = [row for row in page.rows if any(one.words for one in row.actions)]
        self.say(*(row.spoken for row in page.rows if row not in offered))
        chosen = await self.choose(f"{page.title}:", [row.spoken for row in offered])
        if chosen is None:
            return
        actions = [one for one in offered[chosen].actions if one.words]
        if len(actions) == 1:
            await self._do(actions[0])
        else:
            await self._offer(f"{offered[chosen].name}:", actions)

    async def _offer(self, heading: str, actions: Sequence[PageAction]) -> None:
        """Do the action whose number is typed."""
        while (chosen := await self.choose(heading, [one.words for one in actions])) is not None:
            await self._do(actions[chosen])
            if not actions[chosen].repeats:
                break

    async def _do(self, action: PageAction) -> None:
        if action.question is None or await self.confirm(*action.question):
            self.say(*filter(None, (await action.run(),)))

    async def edit(self, path: Path, invitation: str = "", *, line: int = 1) -> None:
        """Say the path: an editor would need the terminal."""
        self.say(f"{invitation}{clean_line(str(path))}")

    async def sign_in(self, name: str, address: SignInAddress) -> str:
        """Say the address, and take a pasted one."""
        from phoenix_tui.features.mcp import paste, sign_in_lines  # noqa: PLC0415 - seldom used

        self.say(*sign_in_lines(name, address))
        pasted = await self.ask_line("Pasted address, or Enter where the browser is on this machine")
        return await paste(self, name, pasted) if pasted else ""

    def name_way(self, key: str, command: str) -> str:
        """The command."""
        return command

    def leave(self, code: int) -> None:
        """End the front end."""
        self.leaving = code
        self.terminal.wake()


class LinearSideQuestions:
    """Side questions that wait for an answer."""

    def __init__(self, active: LinearConversation) -> None:
        self._active = active
        self._asked: set[asyncio.Task[None]] = set()
        self.exchanges: list[SideExchange] = []
        """The questions asked one on the other, the newest last."""
        self.about = ""
        """Conversation that they were asked about."""

    def ask(self, conversation: Conversation, question: str, *, more: bool = False) -> asyncio.Task[None]:
        """Ask; the lines come with the answer. With `more` the model is given the questions before it."""
        if not more or self.about != conversation.id:
            self.exchanges, self.about = [], conversation.id
        task = asyncio.get_running_loop().create_task(self._answer(conversation, question))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        return task

    def drop(self) -> bool:
        """Wait for none of them any more; False where none was asked."""
        dropped = [task.cancel() for task in self._asked]
        return bool(dropped)

    async def close(self) -> None:
        """Drop all and wait until they have ended."""
        asked = tuple(self._asked)
        self.drop()
        await asyncio.gather(*asked, return_exceptions=True)

    async def _answer(self, conversation: Conversation, question: str) -> None:
        exchanges = self.exchanges
        answer = await answer_of(conversation.side, question, tuple(exchanges))
        if not answer.failed:
            exchanges.append(SideExchange(question, answer.text))
        self._active.say(f"Side question: {in_one_line(question)}", *_lines(answer))
        if self._active.rested.is_set():
            self._active.invite()


def _lines(answer: SideAnswer) -> list[str]:
    """The answer without its Markdown signs, or why there is none."""
    if answer.failed:
        return [f"Refused: {answer.text}"]
    words = AnswerLines(begun=True)
    return [*words.add(answer.text), *words.end(), "End of the side answer."]


NOTHING_SENT: Final = "Nothing was sent yet."
LAST_MESSAGES: Final = 2
"""Messages read out when a conversation is opened."""


class LinearContext(LineAsker):
    """The open conversation, the lines on the terminal, and the session's state beside both: a `FrontEnd`."""

    def __init__(self, services: Services, launch: Launch, terminal: LineTerminal) -> None:
        self.active = LinearConversation(services, launch, terminal)
        super().__init__(terminal, self.active)
        self.side_questions = LinearSideQuestions(self.active)
        self.rule_changes = RuleChanges(services.engine.rules, "/rules undo restores it")
        self.history = PromptHistory(launch.state_folder, launch.cwd)

    @property
    def opened(self) -> Conversation | None:
        """The open conversation; None after a notice."""
        if self.conversation is None:
            self.say(NOTHING_SENT)
        return self.conversation

    async def open(self, conversation_id: str) -> None:
        """Switch to another conversation; its draft becomes the typed line. Raises EngineError."""
        draft = await self.active.open(await self.services.engine.open(conversation_id), LAST_MESSAGES)
        if draft:
            self.active.invite()
            self.terminal.put(draft)

    async def begin_anew(self) -> None:
        """Put a new conversation in the place of an empty one; its images stay."""
        images = list(self.active.images)
        self.active.images = []
        await self.active.put_away("")
        self.active.images = images

    def stop(self) -> bool:
        """Stop the run; False where there was none."""
        return self.active.stop()

    def leave(self, code: int) -> None:
        """End the front end, and drop pending side questions."""
        self.side_questions.drop()
        super().leave(code)


LineCommand: TypeAlias = Callable[[LinearContext, str], Awaitable[None]]
