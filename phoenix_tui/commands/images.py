"""The images of the next message: attach one, look at them, take one away."""

from __future__ import annotations

import asyncio
from typing import Final

from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.image_files import named_images
from phoenix_tui.keys.active_keys import key
from phoenix_tui.modals.image_sheet import ImageSheet


async def images(ctx: CommandContext, argument: str) -> None:
    """Look at them; the argument may be the number of one."""
    chips = ctx.dock.chips
    if not chips.images:
        ctx.tell(f"No image is attached. {key('paste')} pastes one; /image FILE or dropping a file also works.")
        return

    at = int(argument) - 1 if argument.isdecimal() and 0 < int(argument) <= len(chips.images) else 0
    await ctx.sheets.show(ImageSheet(chips, ctx.active.parts.pictures, at))


async def image(ctx: CommandContext, argument: str) -> None:
    """Attach a file, named as it is dropped or by its path from the working directory."""
    if not argument:
        ctx.tell("Give a file: /image FILE.")
        return
    await ctx.sending.attach(await asyncio.to_thread(named_images, ctx.active.folder, argument))


RUNS: Final[dict[str, Run]] = {"image": image, "images": images}
