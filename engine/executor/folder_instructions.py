"""Instruction files of subfolders: added to the first result of a tool that reads there (SPEC CLAW-17).

They are in no system prompt, since a changed one would void the cache of all messages.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.executor.equipment import note_read
from engine.executor.instruction_hooks import hear_folder_file
from engine.executor.session import Session
from engine.machine.messages import ToolResultBlock, text_in
from engine.machine.views import Omission, OmissionKind
from engine.ports.instructions import PromptFile
from engine.records import StoredMessage
from tools.clean import reveal_name
from tools.contract import ToolClass, ToolOutput, ToolRequest, ToolSpec

MOST_CHARACTERS: Final = 40_000
"""Characters of these files that a model sees at one time."""
_HEADING: Final = "[Instructions for files in {folder}, from {path}: {size:,} characters]"
_FOUND: Final = re.compile(
    r"^\[Instructions for files in [^\n]*, from ([^\n]*): ([\d,]{1,9}) characters\]$", re.MULTILINE
)


async def with_folder_instructions(
    session: Session, spec: ToolSpec, request: ToolRequest, output: ToolOutput
) -> ToolOutput:
    """The output with the instruction files that lead to what was read, each once as long as the model sees it.

    Sources of extensions hear of the paths too: skills of a subfolder join.

    A tool with a display of its own gets none: the model would read what its user does not see.
    """
    note_read(session, spec, request, output)
    if spec.tool_class is not ToolClass.READ or output.is_error or output.display is not None or not request.paths:
        return output
    cwd = session.record.cwd
    files = {
        file.path: (file, path)
        for path in request.paths
        for file in await asyncio.to_thread(_beside, session, cwd, path)
    }
    if not files:
        return output
    rows = await session.rows()
    seen = _seen(rows, session.record.view.omitted)
    run, added = session.run.folder_files, list[str]()
    room = MOST_CHARACTERS - sum(seen.values())
    for file, read in files.values():
        # The results of a round are stored together at its end.
        if reveal_name(str(file.path)) not in seen and run.get(file.path) != len(rows) and len(file.text) <= room:
            run[file.path] = len(rows)
            room -= len(file.text)
            added.append(_written(file))
            hear_folder_file(session, file, read)
    return replace(output, text="\n\n".join([output.text, *added])) if added else output


def _beside(session: Session, cwd: Path, path: Path) -> tuple[PromptFile, ...]:
    return session.settings.instructions.beside(cwd, path)


def _written(file: PromptFile) -> str:
    folder, path = reveal_name(str(file.path.parent)), reveal_name(str(file.path))
    heading = _HEADING.format(folder=folder, path=path, size=len(file.text))
    return f"{heading}\n{file.text}"


def _seen(rows: Iterable[StoredMessage], omitted: Iterable[Omission]) -> Mapping[str, int]:
    """Paths of the files in results that the model sees whole, with their characters."""
    hidden = {(each.seq, each.block) for each in omitted if each.kind is not OmissionKind.IMAGE}
    found: dict[str, int] = {}
    for row in rows:
        for place, block in enumerate(row.blocks):
            if isinstance(block, ToolResultBlock) and (row.seq, place) not in hidden:
                text = text_in(block.content)
                found |= {name: int(size.replace(",", "")) for name, size in _FOUND.findall(text)}
    return found
