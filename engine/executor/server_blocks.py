"""Texts and images of a server for a message of the user, as blocks: marked as the server's words, and bounded."""

from __future__ import annotations

from typing import Final

from engine.executor.attaching import not_attached, sees, stored_image
from engine.executor.session import Session
from engine.machine.messages import Block, TextBlock
from engine.ports import StorageError
from tools.contract import ToolOutput

TAG: Final = "server_words"
NO_IMAGES: Final = "an image of {chip}, since {model} cannot see images"


async def blocks_of(session: Session, output: ToolOutput, words: str, chip: str, room: int) -> tuple[Block, ...]:
    """The text between marks that it cannot end itself, behind `words` about where it is from; then its images.

    `chip` names it at the message; text beyond `room` characters is left out from its middle.
    """
    blocks: list[Block] = [TextBlock(f"[{words}:]\n<{TAG}>\n{_bounded(output.text, room)}\n</{TAG}>", chip)]
    if output.images and not sees(session):
        return (*blocks, not_attached(NO_IMAGES.format(chip=chip, model=session.record.model)))
    for image in output.images:
        try:
            blocks.append(await stored_image(session, image))
        except StorageError as error:
            blocks.append(not_attached(str(error)))
    return tuple(blocks)


def _bounded(text: str, room: int) -> str:
    text = text.strip("\n").replace(TAG, TAG.replace("_", " "))
    if len(text) <= room:
        return text
    half = max(room // 2, 1)
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
