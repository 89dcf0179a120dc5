"""Asks and says in lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from engine.executor.requests import Receipt, Refused
from phoenix_tui.features.front_end import FrontEnd, InView, Option
from phoenix_tui.linear.line_buffer import LeaveTyped, LineTyped
from phoenix_tui.linear.terminal import LineTerminal
from tools.clean import clean, clean_line
from tools.wording import number_within

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
        return (await self.typed(prompt, text) or "").strip()

    async def typed(self, prompt: str, text: str = "") -> str | None:
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

    async def pick(self, heading: str, options: Sequence[Option], *, current: str = "", free: bool = False) -> str:
        """The key of the option whose number is typed; empty for anything else."""
        rows = [", ".join((one.words + (" (now)" if one.key == current else ""), *one.facts)) for one in options]
        chosen = await self.choose(f"{heading}:", rows)
        return options[chosen].key if chosen is not None else ""

    async def confirm(self, question: str, yes: str, no: str) -> bool:
        """Ask yes or no; anything but the number of yes is no."""
        return await self.choose(question, (no, yes)) == 1

    def leave(self, code: int) -> None:
        """End the front end."""
        self.leaving = code
        self.terminal.wake()
