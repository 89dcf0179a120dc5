"""Additions to the result of a call: instruction files of subfolders, checks of language servers, text for hooks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.executor.equipment import note_read
from engine.executor.event_hooks import tell_folder_file, wants_hooks
from engine.executor.ready_calls import ReadyCall
from engine.executor.session import Session
from engine.machine.messages import Block, TextBlock, ToolResultBlock, text_in
from engine.machine.views import Omission, OmissionKind
from engine.ports.extensions import HookEvent, PromptFile
from engine.records import StoredMessage
from tools.arguments import ToolFailure
from tools.clean import reveal_name
from tools.contract import DiffDisplay, Sandbox, ToolClass, ToolOutput, ToolRequest, ToolSpec
from tools.displays import EditCheck, check_lines, check_text
from tools.files.location import Location, open_regular, show_path
from tools.lsp.problems import CheckPlace, EditBegun
from tools.wording import one_line

MOST_CHARACTERS: Final = 40_000
"""Characters of these files that a model sees at one time."""
_HEADING: Final = "[Instructions for files in {folder}, from {path}: {size:,} characters]"
LONGEST_SCOPE: Final = 300
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
        for file in await asyncio.to_thread(_find_files, session, cwd, path)
    }
    if not files:
        return output
    rows = await session.rows()
    seen = _find_seen(rows, session.record.view.omitted)
    run, added = session.run.folder_files, list[str]()
    room = MOST_CHARACTERS - sum(seen.values())
    for file, read in files.values():
        # The results of a round are stored together at its end.
        if reveal_name(str(file.path)) not in seen and run.get(file.path) != len(rows) and len(file.text) <= room:
            run[file.path] = len(rows)
            room -= len(file.text)
            added.append(_format_file(file))
            tell_folder_file(session, file, read)
    return replace(output, text="\n\n".join([output.text, *added])) if added else output


async def read_attached_instructions(session: Session, paths: Sequence[Path]) -> tuple[TextBlock, ...]:
    """The same files for a message that attaches `paths`: those that the model does not see yet."""
    cwd = session.record.cwd
    found = [file for path in paths for file in await asyncio.to_thread(_find_files, session, cwd, path)]
    if not found:
        return ()
    seen = _find_seen(await session.rows(), session.record.view.omitted)
    room, blocks = MOST_CHARACTERS - sum(seen.values()), dict[str, TextBlock]()
    for file in found:
        path = reveal_name(str(file.path))
        if path not in seen and path not in blocks and len(file.text) <= room:
            room -= len(file.text)
            blocks[path] = TextBlock(_format_file(file), f"instructions of {reveal_name(show_path(file.path, cwd))}")
            tell_folder_file(session, file, paths[0])
    return tuple(blocks.values())


def _find_files(session: Session, cwd: Path, path: Path) -> tuple[PromptFile, ...]:
    return session.settings.instructions.beside(cwd, path)


def _format_file(file: PromptFile) -> str:
    folder, path = reveal_name(str(file.path.parent)), reveal_name(str(file.path))
    if file.scope:
        folder = one_line(reveal_name(", ".join(file.scope)), LONGEST_SCOPE)
    heading = _HEADING.format(folder=folder, path=path, size=len(file.text))
    return f"{heading}\n{file.text}"


def _find_seen(rows: Iterable[StoredMessage], omitted: Iterable[Omission]) -> Mapping[str, int]:
    """Paths of the files in results that the model sees whole, with their characters."""
    hidden = {(each.seq, each.block) for each in omitted if each.kind is not OmissionKind.IMAGE}
    found: dict[str, int] = {}
    for row in rows:
        for place, block in enumerate(row.blocks):
            if (row.seq, place) not in hidden and (text := _read_own_text(block)):
                found |= {name: int(size.replace(",", "")) for name, size in _FOUND.findall(text)}
    return found


def _read_own_text(block: Block) -> str:
    """Text that Phoenix has put together: a result, or what a message attaches; empty for words of others."""
    if isinstance(block, ToolResultBlock):
        return text_in(block.content)
    return block.text if isinstance(block, TextBlock) and block.attached else ""


MOST_TEXT: Final = 8_000
"""Characters of all checks in one result."""


async def begin_check(session: Session, spec: ToolSpec, request: ToolRequest) -> EditBegun | None:
    """Keep a file as it is before the one edit of it; None where no server would look at it."""
    checker = session.ports.edit_checks
    if checker is None or spec.tool_class is not ToolClass.EDIT or len(request.paths) != 1:
        return None
    record = session.record
    sandbox = Sandbox(record.sandbox, network=session.settings.sandbox_network)
    return await checker.begin(CheckPlace(record.id, record.cwd, sandbox), Path(request.paths[0]))


async def with_checks(session: Session, begun: EditBegun | None, output: ToolOutput, rows: list[str]) -> ToolOutput:
    """The output with the checks of its edit, and those of earlier edits that came meanwhile.

    Where it has no diff to show the latter, `rows` get one for each.
    """
    checker = session.ports.edit_checks
    if checker is None:
        return output
    checks: list[EditCheck] = [*checker.late(session.record.id)]
    if begun is not None and not output.is_error and isinstance(output.display, DiffDisplay):
        checks += await checker.finish(begun, output.display.path)
    if not checks:
        return output
    output = replace(output, text=f"{output.text}\n\n{_join_checks(checks)}")
    if isinstance(output.display, DiffDisplay):
        return replace(output, display=replace(output.display, checks=tuple(checks)))
    rows += (row for check in checks for row in check_lines(check))
    return output


def _join_checks(checks: Sequence[EditCheck]) -> str:
    """Texts of the checks, each whole, as many as there is room for."""
    texts, room = list[str](), MOST_TEXT
    for text in map(check_text, checks):
        if len(text) > room:
            texts.append("[Further findings of language servers are left out.]")
            break
        texts.append(text)
        room -= len(text)
    return "\n".join(texts)


LONGEST: Final = 256 * 1024
"""Characters that a hook gets; the rest is left out."""
_BYTES: Final = LONGEST * 4
"""Bytes that so many characters may take in UTF-8."""


async def read_before(session: Session, ready: ReadyCall) -> str | None:
    """The beginning of the file that a call edits; None where no hook asks, or there is no such file."""
    is_edit = ready.tool.spec.tool_class is ToolClass.EDIT and len(ready.request.paths) == 1
    if not is_edit or not wants_hooks(session, HookEvent.POST_TOOL_USE):
        return None
    try:
        return await asyncio.to_thread(_read, ready.request.paths[0])
    except (OSError, ToolFailure):
        return None


def _read(path: Path) -> str:
    with open_regular(Location(Path(path.anchor), path.parts[1:], str(path))) as stream:
        text = stream.read(_BYTES).decode("utf-8", "replace")
    return text.replace("\r\n", "\n")[:LONGEST]
