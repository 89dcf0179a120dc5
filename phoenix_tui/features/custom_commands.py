"""Skills and command files as `/name`: completions, the question before one runs, and why one cannot be called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from engine.extensions.skills import CALL, why_not_called
from engine.ports.extensions import Invocable, InvocableCatalogue, InvocableKind, WaitingInvocable
from tools.clean import reveal
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.executor.requests import NeedsYes
    from engine.ports.mcp import ServerPrompt

MOST_FOUND: Final = 50
LONGEST_MEANING: Final = 200
"""Characters of a description in a row."""
PROMPT: Final = "prompt of a server"


class InvocablesApi(Protocol):
    """Skills and commands of the folders that are worked in."""

    def catalogue(self, folder: Path) -> InvocableCatalogue:
        """The newest catalogue of a folder, from memory."""
        ...

    async def look(self, folder: Path) -> None:
        """Look at a folder, as long as the bound lasts."""
        ...

    @property
    def used(self) -> Mapping[str, float]:
        """Unix time of the last use of each skill, by name."""
        ...

    async def switch(self, skill: Invocable, *, on: bool) -> None:
        """Switch a skill on or off, in every folder. Raises EngineError."""
        ...

    async def accept(self, folder: Path, waiting: WaitingInvocable) -> None:
        """Accept a skill of a subfolder as it was at the last look. Raises EngineError."""
        ...


class CustomCommand(Struct, frozen=True):
    """One name that can be called."""

    name: str
    meaning: str
    """Description and owner."""
    hint: str
    low_name: str
    low_meaning: str

    @property
    def usage(self) -> str:
        """Form to type: `/fix ISSUE`."""
        return f"/{self.name} {self.hint}".rstrip()


class CustomCommands:
    """Names of one catalogue and of prompts of servers, made once: a search over 500 takes half a millisecond."""

    def __init__(self, catalogue: InvocableCatalogue, prompts: Sequence[ServerPrompt] = ()) -> None:
        self.catalogue, self.prompts = catalogue, prompts
        plain = {id(one) for name, one in catalogue.by_call.items() if name == one.name}
        found = catalogue.by_call.items()
        self._all = [_command(name, one) for name, one in found if name == one.name or id(one) not in plain]
        self._all += [_of_prompt(one) for one in prompts]
        self._all.sort(key=lambda one: one.name)
        self._by_name = {one.name: one for one in self._all}
        self._prefixed = [_command(name, one) for name, one in found if name not in self._by_name]

    def find_command(self, name: str) -> CustomCommand | None:
        """The one that a name calls."""
        one = self.catalogue.find(name)
        return self._by_name.get(name) or (_command(name, one) if one is not None else None)

    def matching(self, query: str) -> Sequence[CustomCommand]:
        """Names for the text behind the slash: with this beginning, that contain it, whose letters are in order, and
        those whose description contains it.
        """
        wanted = query.lower()
        pool: Iterable[CustomCommand] = (*self._all, *self._prefixed) if ":" in wanted else self._all
        ranked = ((rank, one) for one in pool if (rank := _rank(wanted, one)) is not None)
        return [one for _, one in sorted(ranked, key=lambda found: (found[0], found[1].name))[:MOST_FOUND]]


def parse_name(text: str) -> str:
    """The name that a text calls as `/name`; empty where it calls none."""
    found = CALL.fullmatch(text.strip()) if text.startswith("/") else None
    return found["name"] if found is not None else ""


async def is_custom(invocables: InvocablesApi | None, folder: Path, text: str) -> bool:
    """True where a text calls a skill or command file of the folder, as it is now."""
    name = parse_name(text)
    if invocables is None or not name:
        return False
    await invocables.look(folder)
    catalogue = invocables.catalogue(folder)
    return catalogue.find(name) is not None or bool(why_not_called(catalogue, name))


def question(needs: NeedsYes) -> str:
    """Effects of a call, for a yes or no; nothing of it hidden."""
    lines = ["This needs your yes before it is sent."]
    if needs.lines:
        lines += ["It runs:", *(f"  {reveal(part)}" for line in needs.lines for part in line.split("\n"))]
    if needs.rules:
        lines += ["Until its run ends, these run without a question:", *(f"  {reveal(rule)}" for rule in needs.rules)]
    return "\n".join(lines)


def _command(name: str, one: Invocable) -> CustomCommand:
    tag = one.origin.value if one.kind is InvocableKind.COMMAND else f"{one.origin.value} skill"
    meaning = f"{one_line(one.description, LONGEST_MEANING)} · {tag}" if one.description else tag
    return CustomCommand(name, meaning, one.argument_hint, name.lower(), one.description.lower())


def _of_prompt(one: ServerPrompt) -> CustomCommand:
    meaning = f"{one.description} · {PROMPT}" if one.description else PROMPT
    return CustomCommand(one.command, meaning, one.hint, one.command.lower(), one.description.lower())


def _rank(wanted: str, one: CustomCommand) -> int | None:
    name = one.low_name
    if name.startswith(wanted):
        return 0
    if wanted in name:
        return 1
    letters = iter(name)
    if all(letter in letters for letter in wanted):
        return 2
    return 3 if len(wanted) > 1 and wanted in one.low_meaning else None
