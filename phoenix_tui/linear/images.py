"""Images of the next message: by path, by a dropped file or from the clipboard, and always reported in words."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine.api.errors import ENGINE_ERRORS
from engine.records import Attachment
from phoenix_tui.features.image_files import attach_image, dropped_images, named_images
from phoenix_tui.linear.context import LinearContext, Run
from phoenix_tui.terminal.clipboard import Clipboard, ClipboardImage, ClipboardText, ClipboardTrouble
from tools.clean import clean_line
from tools.wording import counted


async def attach_all(ctx: LinearContext, images: Sequence[Path | bytes]) -> None:
    """Attach images to the next message, and describe each."""
    for image in images:
        name = "the clipboard" if isinstance(image, bytes) else clean_line(image.name)
        try:
            attachment = await attach_image(ctx.active, image)
        except ENGINE_ERRORS as error:
            ctx.say(f"Refused: {clean_line(str(error))}")
        else:
            ctx.active.images.append(attachment)
            ctx.say(f"Attached {len(ctx.active.images)}: {_words(attachment)}, from {name}.")


async def attach_dropped(ctx: LinearContext, text: str) -> bool:
    """Attach the image files a line consists of; False where it is anything else."""
    images = dropped_images(text)
    await attach_all(ctx, images)
    return bool(images)


async def _attach(ctx: LinearContext, name: str) -> None:
    name = name or await ctx.ask_line("Image file")
    if name:
        await attach_all(ctx, await asyncio.to_thread(named_images, ctx.launch.cwd, name))


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


async def _images(ctx: LinearContext, _: str) -> None:
    images = ctx.active.images
    if not images:
        ctx.say("No image is attached. /image FILE attaches one, /paste attaches one from the clipboard.")
        return
    chosen = await ctx.choose(
        f"{counted(len(images), 'image')} attached to the next message. Give a number to remove one:",
        [_words(image) for image in images],
    )
    if chosen is not None:
        del images[chosen]
        ctx.say(f"Removed. {counted(len(images), 'image')} attached.")


def _words(image: Attachment) -> str:
    return f"image, {image.width} by {image.height}"


def _drop(_: str) -> None:
    return None


RUNS: Final[dict[str, Run]] = {"image": _attach, "paste": _paste, "images": _images}
