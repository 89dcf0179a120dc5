"""`@FILE` in a message: its text or picture goes with it, where the model could read them without a question.

The tools read_file and read_image do the reading and the policy decides, so an `@` opens nothing that they do not.
"""

from __future__ import annotations

import asyncio
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.executor.approving import denials_of, limits_of, place_of, rules_of
from engine.executor.equipment import extension_folders
from engine.executor.folder_instructions import attached_instructions
from engine.executor.session import Session
from engine.machine.messages import Block, ImageBlock, TextBlock
from engine.permissions.denials import verdict_on
from engine.permissions.policy import Allow, decide
from engine.permissions.rules import RuledCall
from engine.ports import ProviderError, StorageError
from tools.clean import reveal_name
from tools.contract import PreparedImage, Tool, ToolContext, ToolInputError, ToolOutput, ToolRequest
from tools.files.location import resolve, shown
from tools.images.contract import IMAGE_SUFFIXES
from tools.wording import counted

NAMED: Final = re.compile(r"""@(?<![^\s(\[{'"`]@)(?:"([^"\n]{1,1000})"|([^\s"`]{1,1000}))""")
"""A file behind an `@`, in quotation marks where its name has blanks. The `@` comes first: in a paste of megabytes it
is found fast, and its left side is checked only there.
"""
ENDS: Final = ".,;:!?)]}>'*"
"""Signs behind a name that belong to the sentence."""
MOST_LOOKED_FOR: Final = 50
"""Names of which it is looked whether they are files: pasted code has many an `@`."""
MOST_FILES: Final = 10
MOST_CHARACTERS: Final = 100_000
"""Characters of all files of a message; at most a quarter of the window, at four characters a token."""
PATIENCE: Final = 10.0
"""Seconds that all files of a message may take: a file system over the network may never answer."""


async def attachments(session: Session, text: str) -> tuple[Block, ...]:
    """Images, then texts of the files that `text` names; for one that cannot be attached a sentence says why."""
    if "@" not in text:
        return ()
    cwd, deadline = session.record.cwd, asyncio.get_running_loop().time() + PATIENCE
    try:
        async with asyncio.timeout_at(deadline):
            found = await asyncio.to_thread(named_files, text, cwd)
    except TimeoutError:
        return (not_attached("its folder does not respond"),)
    room = min(MOST_CHARACTERS, session.record.context_window or MOST_CHARACTERS)
    blocks: list[Block] = []
    for path in found[:MOST_FILES]:
        for block in await _attached(session, path, room, deadline):
            room -= len(block.text) if isinstance(block, TextBlock) else 0
            blocks.append(block)
    blocks += await attached_instructions(session, found[:MOST_FILES])
    if (left := len(found) - MOST_FILES) > 0:
        blocks.append(not_attached(f"{counted(left, 'more file')}, since a message attaches {MOST_FILES}"))
    return tuple(sorted(blocks, key=lambda block: not isinstance(block, ImageBlock)))


def named_files(text: str, cwd: Path) -> list[Path]:
    """Real paths of existing files behind an `@`, without folders, each once."""
    found = (_file_of(word, cwd) for word in named_words(text))
    return list(dict.fromkeys(path for path in found if path is not None))


def named_words(text: str) -> Iterator[str]:
    """Words behind an `@`, each once, without quotation marks."""
    seen: set[str] = set()
    for match in NAMED.finditer(text):
        word = match[1] or match[2]
        if word not in seen:
            seen.add(word)
            yield word
        if len(seen) == MOST_LOOKED_FOR:
            return


def _file_of(word: str, cwd: Path) -> Path | None:
    for name in dict.fromkeys((word, word.rstrip(ENDS))):
        try:
            path = resolve(name, cwd)
            mode = path.stat().st_mode
        except (OSError, ValueError):
            continue  # no such file, or no valid name
        return None if stat.S_ISDIR(mode) else path
    return None


async def _attached(session: Session, path: Path, room: int, deadline: float) -> tuple[Block, ...]:
    """The blocks of one file, read until `deadline` on the clock of the loop."""
    is_image = path.suffix.lower() in IMAGE_SUFFIXES
    name = reveal_name(shown(path, session.record.cwd))
    if is_image and not sees(session):
        return (not_attached(f"{name}, since {session.record.model} cannot see images"),)
    if room <= 0:
        return (not_attached(f"{name}, since the files before it use up the limit"),)
    tool = session.ports.tools.get("read_image" if is_image else "read_file")
    if tool is None:
        return ()
    try:
        async with asyncio.timeout_at(deadline):
            output = await _read(session, tool, path)
            images = [await stored_image(session, output.images[0])] if output.images else []
    except TimeoutError:
        return (not_attached(f"{name} was not read within {PATIENCE:.0f} s"),)
    except (ToolInputError, StorageError) as error:
        return (not_attached(str(error)),)
    if output.is_error:
        return (not_attached(output.text),)
    if is_image:
        return (*images, TextBlock(f"[Image {output.text}]", name))
    return (_excerpt(name, output, room),)


def sees(session: Session) -> bool:
    """False where it is known that the model cannot see images."""
    try:
        provider, name = session.ports.providers.resolve(session.record.model)
    except ProviderError:
        return True  # reported when the message is answered
    return provider.describe(name).vision is not False


async def _read(session: Session, tool: Tool, path: Path) -> ToolOutput:
    """Output of the tool if its call would run without a question; else a sentence.

    Raises:
        ToolInputError: no file can have this name.
    """
    cwd = session.record.cwd
    name = shown(path, cwd)
    args = {"path": str(path) if name.startswith("~") else name}
    request = await tool.request({**args}, cwd)
    place = place_of(session)
    limits, denials = await limits_of(session), denials_of(session)
    decision = decide(tool.spec, request, limits, place, rules_of(session), denials=denials)
    if not isinstance(decision, Allow):
        closed = bool(limits.unreadable.rule_about(request.paths))
        return ToolOutput(_why_not(session, tool, request, is_closed=closed), is_error=True)
    context = ToolContext(
        session.record.id,
        "",
        cwd,
        decision.outside,
        lambda _: None,
        sandbox=decision.sandbox,
        admitted=request.paths,
        kept_out=(*place.kept_out(request), *decision.sandbox.unreadable),
        readable=extension_folders(session),
    )
    return await tool.run({**args}, context)


def _why_not(session: Session, tool: Tool, request: ToolRequest, *, is_closed: bool) -> str:
    place = place_of(session)
    name = reveal_name(request.summary)
    call = RuledCall(tool.spec.name, tool.spec.tool_class, request, place.working_dir)
    if is_closed or verdict_on(denials_of(session), call) is not None:
        return f"{name} is closed to {tool.spec.name} by a rule that denies."
    if place.own_path(tool.spec, request):
        return f"{name} belongs to Phoenix itself."
    if place.guarded(tool.spec, request):
        return f"{name} is in a folder of keys."
    return f"{name} is outside the working directory."


async def stored_image(session: Session, image: PreparedImage) -> ImageBlock:
    """An image, stored for the message that it goes with. Raises StorageError."""
    stored = await session.ports.store.add_attachment(session.record.id, image, session.ports.clock.now())
    return ImageBlock(stored.id, stored.width, stored.height)


def _excerpt(name: str, output: ToolOutput, room: int) -> TextBlock:
    """The numbered lines of a file, cut between two of them where they are more than the room there is."""
    kept, end = output.text, ""
    if len(kept) > room:
        kept = kept[: kept.rfind("\n", 0, room) + 1].rstrip("\n") or kept[:room]
        end = f"\n[{len(output.text) - len(kept):,} more characters are left out; read_file reads them]"
    lines = sum(1 for line in kept.split("\n") if _NUMBER.match(line))
    words = f"first {counted(lines, 'line')}" if end or output.truncated else counted(lines, "line")
    return TextBlock(f"[File {name}, as it was when the message was sent:\n{kept}{end}\n]", f"{name}: {words}")


_NUMBER = re.compile(r" *\d+\t")


def not_attached(why: str) -> TextBlock:
    """Replacement of a file that is not attached: the message contains its path alone."""
    sentence = why.rstrip(".")
    return TextBlock(f"[Not attached: {sentence}.]", f"not attached: {sentence.partition('; ')[0]}")
