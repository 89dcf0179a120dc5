"""Images of the next message: by path, by a dropped file or from the clipboard, and always reported in words."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine.api.errors import ENGINE_ERRORS
from phoenix_tui.features.image_files import asked_images, attach_image, dropped_images, image_at
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.terminal.clipboard import Clipboard, ClipboardImage, ClipboardText, ClipboardTrouble
from phoenix_tui.text.context_text import spoken_size
from tools.clean import clean_line
from tools.wording import counted

REMOVE, KEEP = "Remove it", "Keep it"


async def attach_all(ctx: LinearContext, images: Sequence[Path | bytes]) -> None:
    """Attach images to the next message, and describe each."""
    for image in images:
        name = "the clipboard" if isinstance(image, bytes) else clean_line(image.name)
        try:
            attachment = await attach_image(await ctx.active.current(), image)
        except ENGINE_ERRORS as error:
            ctx.say(f"Refused: {clean_line(str(error))}")
        else:
            ctx.active.images.append(attachment)
            ctx.say(f"Attached {len(ctx.active.images)}: {spoken_size(attachment)}, from {name}.")


async def attach_dropped(ctx: LinearContext, text: str) -> bool:
    """Attach the image files a line consists of; False where it is anything else."""
    images = dropped_images(text)
    await attach_all(ctx, images)
    return bool(images)


async def _attach(ctx: LinearContext, name: str) -> None:
    await attach_all(ctx, await asked_images(ctx, name))


async def _paste(ctx: LinearContext, _: str) -> None:
    clipboard = Clipboard(ctx.services.runner, os.environ, sys.platform, _drop)
    match await clipboard.paste():
        case ClipboardImage(content=content):
            await attach_all(ctx, [content])
        case ClipboardText(text=text):
            ctx.active.invite()
            ctx.terminal.put(text.replace("\r\n", "\n").replace("\r", "\n"))
        case ClipboardTrouble(reason=reason):
            ctx.say(reason)


async def _images(ctx: LinearContext, text: str) -> None:
    images = ctx.active.images
    place = image_at(ctx, images, text, "/image FILE attaches one, /paste attaches one from the clipboard.")
    if place is None:
        return
    if text:
        chosen = place if await ctx.confirm(f"Image {place + 1}: {spoken_size(images[place])}", REMOVE, KEEP) else None
    else:
        heading = f"{counted(len(images), 'image')} attached to the next message. Give a number to remove one:"
        chosen = await ctx.choose(heading, [spoken_size(image) for image in images])
    if chosen is not None:
        del images[chosen]
        ctx.say(f"Removed. {counted(len(images), 'image')} attached.")


def _drop(_: str) -> None:
    return None


RUNS: Final[dict[str, LineCommand]] = {"image": _attach, "paste": _paste, "images": _images}
