"""Commands and actions on messages: blocks of the transcript, images and drafts of the next message."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never

from engine.machine.messages import Role, text_in
from engine.ports import ConversationChanges
from engine.records import NEWEST, StoredMessage
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.catalogue import as_message
from phoenix_tui.features.composing import NOT_KEPT, NOTHING, DraftStash, StashedDraft, ask_images, image_at
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.modals.changes_sheet import TurnsSheet
from phoenix_tui.modals.image_sheet import ImageSheet
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet
from phoenix_tui.terminal.clipboard import DISPLAY_NAMES
from phoenix_tui.terminal.lending import open_outside
from phoenix_tui.text.labels import ago
from phoenix_tui.widgets.transcript.block_cursor import BlockAction, Target
from phoenix_tui.widgets.transcript.signals import BlockRequest, BlockWanted, FarPrompt, Remark
from phoenix_tui.widgets.transcript.view import TranscriptView
from tools.contract import UNCONFINED, Command
from tools.wording import pluralize

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
            path, trouble = await asyncio.to_thread(_find_file, ctx.active.folder, target.path)
            if trouble:
                ctx.tell(trouble, bad=True)
            elif not await open_outside(ctx.screen.app, path, target.line):
                ctx.tell("The editor cannot be started; set VISUAL or EDITOR.", bad=True)
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


async def open_image(ctx: CommandContext, image_id: str) -> None:
    """Show a stored image in the desktop's own viewer; where there is no desktop, say where the file is."""
    stored = await ctx.active.services.engine.attachments([image_id])
    if not stored:
        ctx.tell("This image is no longer stored.", bad=True)
        return
    path = stored[0].path
    viewer = viewer_of(sys.platform, os.environ)
    if viewer and await _show_outside(ctx, viewer, path):
        ctx.tell(f"Opened with {viewer}.")
    else:
        ctx.tell(f"The image is {path}; {key('block_open')} on it shows it larger.")


def viewer_of(platform: str, environment: Mapping[str, str]) -> str:
    """The program that opens a file as a double click would; empty where there is no desktop to do it."""
    if platform == "darwin":
        return "open"
    return "xdg-open" if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") else ""


async def _show_outside(ctx: CommandContext, viewer: str, path: Path) -> bool:
    names = {name: os.environ[name] for name in DISPLAY_NAMES if name in os.environ}
    command = Command((viewer, str(path)), path.parent, VIEWER_SECONDS, names, sandbox=UNCONFINED)
    try:
        return (await ctx.active.services.runner.run(command)).exit_code == 0
    except OSError:
        return False


def _find_file(folder: Path, name: str) -> tuple[Path, str]:
    """The file a call named, and why it cannot be opened where it cannot."""
    path = folder / Path(name).expanduser()
    if path.is_file():
        return path, ""
    return path, f"{path} is a folder." if path.is_dir() else f"{path} no longer exists."


async def run_turns(ctx: CommandContext, _: str) -> None:
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


async def run_images(ctx: CommandContext, argument: str) -> None:
    """Look at them; the argument may be the number of one."""
    chips = ctx.dock.chips
    ways = f"{key('paste')} pastes one; /image FILE or dropping a file also works."
    place = image_at(ScreenFrontEnd(ctx), chips.images, argument, ways)
    if place is not None:
        await ctx.sheets.show(ImageSheet(chips, ctx.active.parts.pictures, place))


async def run_image(ctx: CommandContext, argument: str) -> None:
    """Attach a file, named as it is dropped or by its path from the working directory."""
    await ctx.sending.attaching.attach(await ask_images(ScreenFrontEnd(ctx), argument))


DRAFT: Final = "draft"
"""Argument of the key: the draft in the composer is meant."""
TAKEN: Final = "Another Phoenix has taken this draft."


async def run_stash(ctx: CommandContext, text: str) -> None:
    """Put a text aside; without one list the drafts; by the key put the draft aside, or bring the newest back."""
    if not ctx.active.services.kept:
        ctx.tell(NOT_KEPT, bad=True)
        return
    kept = DraftStash(ctx.active.launch.state_folder, ctx.active.launch.cwd)
    try:
        if text == DRAFT:
            _toggle(ctx, kept)
        elif text:
            _tell_put_aside(ctx, kept, kept.put(text))
        else:
            await _choose(ctx, kept)
    except OSError as error:
        ctx.tell(f"The draft could not be put aside or taken: {error.strerror or error}.", bad=True)


def _toggle(ctx: CommandContext, kept: DraftStash) -> None:
    composer = ctx.dock.composer
    if composer.content.strip():
        _put_aside(ctx, kept)
    elif found := kept.all():
        _bring_back(ctx, kept, found[0])
    else:
        ctx.tell(NOTHING)


async def _choose(ctx: CommandContext, kept: DraftStash) -> None:
    found = {one.name: one for one in kept.all()}
    if not found:
        ctx.tell(NOTHING)
        return
    rows = [PickerRow(one.name, one.words, ago(time.time() - one.at), one.text) for one in found.values()]
    chosen = await ctx.sheets.show(PickerSheet("Drafts put aside", rows, takes="Enter brings it back"))
    if chosen and (draft := found.get(chosen)) is not None:
        if ctx.dock.composer.content.strip() and not _put_aside(ctx, kept):
            return
        _bring_back(ctx, kept, draft)


def _put_aside(ctx: CommandContext, kept: DraftStash) -> bool:
    composer = ctx.dock.composer
    if refused := kept.put(composer.content, tuple(composer.folds)):
        ctx.tell(refused, bad=True)
        return False
    composer.keys.take()
    _tell_put_aside(ctx, kept, "")
    return True


def _bring_back(ctx: CommandContext, kept: DraftStash, draft: StashedDraft) -> None:
    if not kept.take(draft):
        ctx.tell(TAKEN)
        return
    ctx.dock.composer.load(draft.text, draft.folds)
    ctx.dock.screen.set_focus(ctx.dock.composer)


def _tell_put_aside(ctx: CommandContext, kept: DraftStash, refused: str) -> None:
    count = pluralize(len(kept.all()), "draft")
    back = hint(("stash", "on an empty line brings it back"), "/stash lists them")
    ctx.tell(refused or f"Put aside ({count}). {back}.", bad=bool(refused))


LOOK_BACK: Final = 60
"""Messages in which the last answer is looked for."""


async def run_copy(ctx: CommandContext, argument: str) -> None:
    """Copy the last answer, or the text of a stopped one; `2` is the answer before it."""
    number = int(argument) if argument.isascii() and argument.isdecimal() and len(argument) < 5 else int(not argument)
    if number < 1:
        ctx.tell("Type /copy for the last answer, /copy 2 for the one before it.", bad=True)
        return
    text = await _answer_before(ctx, number)
    if not text:
        ctx.tell("There is no answer to copy yet." if number == 1 else f"There are no {number} answers to copy yet.")
        return
    ctx.tell(f"Copied {len(text):,} characters {await ctx.clipboard.copy(text)}.")


async def _answer_before(ctx: CommandContext, number: int) -> str:
    """The text of an answer, counted from the last one; a stopped one counts. Empty where there are not as many."""
    found = [ctx.active.unsaved] if ctx.active.unsaved else []
    before = NEWEST
    while len(found) < number and ctx.active.conversation is not None:
        page = (await ctx.active.conversation.history(before, LOOK_BACK)).messages
        if not page:
            break
        found += [words for one in reversed(page) if (words := answer(one))]
        before = page[0].seq
    return found[number - 1] if len(found) >= number else ""


def answer(message: StoredMessage) -> str:
    """The text of an answer; empty for every other message."""
    if message.role is not Role.ASSISTANT or message.silent:
        return ""
    return text_in(message.blocks, "\n\n")
