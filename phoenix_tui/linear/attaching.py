"""Images of the next message: by path, by a dropped file or from the clipboard, and always said in words."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.api.errors import ENGINE_ERRORS
from engine.records import Attachment
from phoenix_tui.features.image_files import dropped_images, named_images, read_image
from phoenix_tui.linear.command import LinearCommand
from phoenix_tui.terminal.clipboard import Clipboard, ClipboardImage, ClipboardText, ClipboardTrouble
from tools.clean import clean_line
from tools.contract import ImageRejected
from tools.wording import counted

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront


async def attach_all(front: LinearFront, images: Sequence[Path | bytes]) -> None:
    """Put images to the next message, and say what each is."""
    for image in images:
        name = "the clipboard" if isinstance(image, bytes) else clean_line(image.name)
        try:
            content = image if isinstance(image, bytes) else await asyncio.to_thread(read_image, image)
            attachment = await (await front.talk.current()).attach(content)
        except OSError as error:
            front.say(f"Refused: {name} cannot be read: {error.strerror}.")
        except (*ENGINE_ERRORS, ImageRejected) as error:
            front.say(f"Refused: {clean_line(str(error))}")
        else:
            front.talk.images.append(attachment)
            front.say(f"Attached {len(front.talk.images)}: {_words(attachment)}, from {name}.")


async def attach_dropped(front: LinearFront, text: str) -> bool:
    """Attach the image files a line consists of; False where it is anything else."""
    images = dropped_images(text)
    await attach_all(front, images)
    return bool(images)


async def _attach(front: LinearFront, name: str) -> None:
    name = name or await front.ask_line("Image file: ")
    if name:
        await attach_all(front, await asyncio.to_thread(named_images, front.launch.cwd, name))


async def _paste(front: LinearFront, _: str) -> None:
    clipboard = Clipboard(front.services.runner, os.environ, sys.platform, _drop)
    match await clipboard.paste():
        case ClipboardImage(content=content):
            await attach_all(front, [content])
        case ClipboardText(text=text):
            front.invite()
            front.terminal.put(text.replace("\r\n", "\n").replace("\r", "\n"))
        case ClipboardTrouble(reason=reason):
            front.say(reason)


async def _images(front: LinearFront, _: str) -> None:
    images = front.talk.images
    if not images:
        front.say("No image is attached. /attach FILE attaches one, /paste takes one from the clipboard.")
        return
    chosen = await front.choose(
        f"{counted(len(images), 'image')} go with the next message. A number takes one away:",
        [_words(image) for image in images],
    )
    if chosen is not None:
        del images[chosen]
        front.say(f"Taken away. {counted(len(images), 'image')} attached.")


def _words(image: Attachment) -> str:
    return f"image, {image.width} by {image.height}"


def _drop(_: str) -> None:
    return None


COMMANDS: Final[dict[str, LinearCommand]] = {
    "attach": LinearCommand("/attach FILE attaches an image to the next message; a dropped file is taken too", _attach),
    "image": LinearCommand("the same as /attach", _attach),
    "paste": LinearCommand("attach the image on the clipboard, or take its text into the line", _paste),
    "images": LinearCommand("the images of the next message; take one away", _images),
}
