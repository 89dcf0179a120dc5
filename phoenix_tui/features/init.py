"""/init: a first AGENTS.md, written by the model with its tools, or with the gathered facts where there is no model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.executor.requests import EngineError
from phoenix_tui.features.front_end import accepted
from phoenix_tui.features.project_facts import gather
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.models.choice import GUIDE
from tools.failure import ToolFailure, explain
from tools.files.atomic import replace_file
from tools.files.diff import diff_display
from tools.files.location import Location
from tools.files.writing import read_existing

if TYPE_CHECKING:
    from phoenix_tui.features.front_end import FrontEnd

NAME: Final = "AGENTS.md"
CHANGED: Final = "AGENTS.md changed in the meantime; nothing was written."
WRITTEN: Final = "AGENTS.md is written. It counts once this folder is trusted: Phoenix asks at its next start here."
CLOSED: Final = "A rule denies to read AGENTS.md, so it is not changed; /rules lists them."
NOTHING_NEW: Final = "AGENTS.md contains these facts already."
REQUEST: Final = """{order} AGENTS.md in the working directory: instructions for agents that work on this project.

Look at the project with your tools first; check each fact below, which was gathered without a model. Write at most 60 \
lines of Markdown: the purpose of the project in two sentences, its layout, the commands to build, run, test and lint \
it (one test alone too), and the conventions that its code and documents follow. Leave out what any reader sees at \
once, and invent nothing.

<project_facts>
{facts}
</project_facts>"""
IMPORT: Final = """

CLAUDE.md in the same folder has instructions too, and counts only where there is no AGENTS.md. Begin AGENTS.md with \
the line `@CLAUDE.md`, which adds that file to it, and do not repeat what it says."""
OTHER: Final = "CLAUDE.md"
WRITE: Final = "Write"
IMPROVE: Final = "Improve the existing"


async def init(front: FrontEnd, _: str) -> None:
    """Ask the model for the file, or write the facts after a yes.

    Raises:
        EngineError: the request was refused, or the file cannot be written.
    """
    folder = front.conversation.record.cwd if front.conversation is not None else front.launch.cwd
    is_closed = front.services.engine.rules.closed(folder)
    if front.model == GUIDE:
        if is_closed(folder / NAME):
            raise EngineError(CLOSED)
        await _write_facts(front, folder, (await asyncio.to_thread(gather, folder, is_closed)).markdown)
        return
    text = await request_text(folder, is_closed)
    conversation = await front.current()
    accepted(await conversation.say(text, (), caps_for(front, conversation)))


async def request_text(folder: Path, is_closed: Callable[[Path], bool]) -> str:
    """The message that asks the model for the file, with facts of files that rules do not deny to read."""
    facts = (await asyncio.to_thread(gather, folder, is_closed)).markdown
    exists = await asyncio.to_thread((folder / NAME).exists)
    inside = facts.replace("</project_facts", "< /project_facts")
    text = REQUEST.format(order=IMPROVE if exists else WRITE, facts=inside)
    return text if exists or not await asyncio.to_thread((folder / OTHER).exists) else text + IMPORT


async def _write_facts(front: FrontEnd, folder: Path, facts: str) -> None:
    """Show the new file, or what changes in the one that exists; write it after a yes."""
    location = await asyncio.to_thread(_location, folder)
    before = await asyncio.to_thread(_present, location)
    if before is None and await asyncio.to_thread((folder / OTHER).exists):
        facts = f"@{OTHER}\n\n{facts}"  # it counts only where there is no AGENTS.md
    if before == facts:
        front.tell(NOTHING_NEW)
        return
    if before is None:
        await front.review(f"New {NAME}, from facts gathered without a model", facts)
        question = f"Write {NAME}?"
    else:
        await front.review(f"Changes to {NAME}", diff_display(NAME, before, facts).diff)
        question = f"Replace the existing {NAME}?"
    if await front.confirm(question, "write it", "leave it"):
        await asyncio.to_thread(_write, location, before, facts)
        front.tell(WRITTEN)


def _location(folder: Path) -> Location:
    return Location(folder.resolve(), (NAME,), NAME)


def _present(location: Location) -> str | None:
    """The text of the file, None where there is none; raises EngineError where it is no text file."""
    try:
        existing = read_existing(location)
    except ToolFailure as error:
        raise EngineError(str(error)) from error
    except OSError as error:
        raise EngineError(explain(error, NAME)) from error
    return existing.content.text if existing is not None else None


def _write(location: Location, before: str | None, text: str) -> None:
    """Replace exactly what was shown."""
    if _present(location) != before:
        raise EngineError(CHANGED)
    try:
        replace_file(location, text.encode("utf-8", "replace"))
    except ToolFailure as error:
        raise EngineError(str(error)) from error
    except OSError as error:
        raise EngineError(explain(error, NAME)) from error
