"""Actions on a block of a transcript: a copy that ends there, its prompt sent again, its file opened."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never

from engine.ports import ConversationChanges
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.features.catalogue import as_message
from phoenix_tui.keys.active_keys import key
from phoenix_tui.modals.turns_sheet import TurnsSheet
from phoenix_tui.terminal.clipboard import DISPLAY_NAMES
from phoenix_tui.widgets.transcript.signals import BlockRequest, BlockWanted, FarPrompt, Remark
from phoenix_tui.widgets.transcript.targets import BlockAction, Target
from phoenix_tui.widgets.transcript.view import TranscriptView
from phoenix_tui.workspace.external_editor import open_outside
from tools.contract import UNCONFINED, Command

VIEWER_SECONDS: Final = 10.0


async def act(ctx: CommandContext, wanted: BlockWanted) -> None:
    """Carry out a request of a transcript."""
    match wanted.request:
        case Remark(text=text):
            ctx.tell(text, bad=True)
        case FarPrompt(seq=seq, by=by):
            await _far_prompt(ctx, wanted, seq, by)
        case BlockRequest(action=action, target=target):
            await _do(ctx, action, target)
        case _:
            assert_never(wanted.request)


async def _do(ctx: CommandContext, action: BlockAction, target: Target) -> None:
    match action:
        case BlockAction.FORK:
            await fork_at(ctx, target.conversation_id, target.last_seq)
            ctx.tell(f"Forked after message {target.last_seq}. The original conversation is kept.")
        case BlockAction.EDIT:
            await edit_again(ctx, target)
        case BlockAction.OPEN_FILE:
            await _open_file(ctx, target)
        case BlockAction.OPEN_IMAGE:
            await open_image(ctx, target.image_id)
        case BlockAction.TOGGLE | BlockAction.COPY:
            raise AssertionError(action)  # the transcript does these itself
        case _:
            assert_never(action)


async def fork_at(ctx: CommandContext, conversation_id: str, last_seq: int) -> None:
    """Continue in a copy that ends with message `last_seq`; 0 for one without messages."""
    await ctx.active.show(await ctx.active.services.engine.fork(conversation_id, last_seq))
    await ctx.active.index.reload()


async def edit_again(ctx: CommandContext, prompt: Target) -> None:
    """A copy that ends before a prompt, with the prompt and its images in the composer."""
    engine = ctx.active.services.engine
    images = await engine.attachments(prompt.image_ids)
    copy = await engine.fork(prompt.conversation_id, prompt.seq - 1)
    await copy.change(ConversationChanges(draft=as_message(prompt.text)))  # shown before what is typed meanwhile
    await ctx.active.show(copy)
    await ctx.active.index.reload()
    await ctx.sending.attaching.attach([image.path for image in images])
    ctx.dock.composer.focus()
    ctx.tell("Edit and resend. The original conversation is kept.")


async def _open_file(ctx: CommandContext, target: Target) -> None:
    path, trouble = await asyncio.to_thread(_found, ctx.active.folder, target.path)
    if trouble:
        ctx.tell(trouble, bad=True)
    elif not await open_outside(ctx.screen.app, path, target.line):
        ctx.tell("The editor cannot be started; set VISUAL or EDITOR.", bad=True)


async def open_image(ctx: CommandContext, image_id: str) -> None:
    """Show a stored image in the desktop's own viewer; where there is no desktop, say where the file is."""
    stored = await ctx.active.services.engine.attachments([image_id])
    if not stored:
        ctx.tell("This image is no longer stored.", bad=True)
        return
    path = stored[0].path
    viewer = viewer_of(sys.platform, os.environ)
    if viewer and await _shown(ctx, viewer, path):
        ctx.tell(f"Opened with {viewer}.")
    else:
        ctx.tell(f"The image is {path}; {key('block_open')} on it shows it larger.")


def viewer_of(platform: str, environment: Mapping[str, str]) -> str:
    """The program that opens a file as a double click would; empty where there is no desktop to do it."""
    if platform == "darwin":
        return "open"
    return "xdg-open" if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") else ""


async def _shown(ctx: CommandContext, viewer: str, path: Path) -> bool:
    names = {name: os.environ[name] for name in DISPLAY_NAMES if name in os.environ}
    command = Command((viewer, str(path)), path.parent, VIEWER_SECONDS, names, sandbox=UNCONFINED)
    try:
        return (await ctx.active.services.runner.run(command)).exit_code == 0
    except OSError:
        return False


def _found(folder: Path, name: str) -> tuple[Path, str]:
    """The file a call named, and why it cannot be opened where it cannot."""
    path = folder / Path(name).expanduser()
    if path.is_file():
        return path, ""
    return path, f"{path} is a folder." if path.is_dir() else f"{path} no longer exists."


async def turns(ctx: CommandContext, _: str) -> None:
    """The list of turns; Enter goes to one."""
    conversation = ctx.active.conversation
    found = () if conversation is None else await ctx.active.services.library.turns(conversation.id)
    if not found:
        ctx.tell("There are no prompts yet.")
        return
    view = ctx.active.parts.transcript
    viewport, model = view.canvas.viewport, view.canvas.model
    chosen = await ctx.sheets.show(TurnsSheet(found, model.count if viewport.following else viewport.slot + 1))
    if chosen:
        view.scroller.jump(int(chosen))


async def _far_prompt(ctx: CommandContext, wanted: BlockWanted, seq: int, by: int) -> None:
    """Jump to a prompt that is not in memory."""
    conversation = ctx.active.conversation
    if conversation is None or not isinstance(wanted.view, TranscriptView):
        return
    every = await ctx.active.services.library.turns(conversation.id)
    found = [turn.seq for turn in every if (turn.seq <= seq if by < 0 else turn.seq >= seq)]
    if found:
        wanted.view.scroller.jump(found[-1] if by < 0 else found[0])


RUNS: Final[dict[str, CommandFunction]] = {"turns": turns}
