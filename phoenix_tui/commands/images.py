"""The images of the next message: attach one, look at them, take one away."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.image_files import asked_images, image_at
from phoenix_tui.keys.active_keys import key
from phoenix_tui.modals.image_sheet import ImageSheet


async def images(ctx: CommandContext, argument: str) -> None:
    """Look at them; the argument may be the number of one."""
    chips = ctx.dock.chips
    ways = f"{key('paste')} pastes one; /image FILE or dropping a file also works."
    place = image_at(ScreenFrontEnd(ctx), chips.images, argument, ways)
    if place is not None:
        await ctx.sheets.show(ImageSheet(chips, ctx.active.parts.pictures, place))


async def image(ctx: CommandContext, argument: str) -> None:
    """Attach a file, named as it is dropped or by its path from the working directory."""
    await ctx.sending.attaching.attach(await asked_images(ScreenFrontEnd(ctx), argument))


RUNS: Final[dict[str, CommandFunction]] = {"image": image, "images": images}
