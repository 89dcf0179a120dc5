"""Token counts estimated from sizes (SPEC CLAW-22); always shown with `~`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec

from engine.machine.messages import Block, ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.machine.views import CHARACTERS_PER_TOKEN
from tools.contract import ToolSpec

PIXELS_PER_TOKEN = 750
"""Factor for images from Anthropic's documentation."""
LARGEST_IMAGE = 1_600
"""Tokens of one image after the provider has shrunk it."""


def text_tokens(text: str) -> int:
    """Tokens of a text; at least one where there is any."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def image_tokens(image: ImageBlock) -> int:
    """Tokens of an image of this size."""
    return min(max(image.width * image.height // PIXELS_PER_TOKEN, 1), LARGEST_IMAGE)


def block_tokens(block: Block) -> int:
    """Tokens of one block of a message, including nested blocks."""
    match block:
        case TextBlock(text=text):
            return text_tokens(text)
        case ThinkingBlock(text=text, signature=signature, redacted=redacted):
            return text_tokens(signature if redacted else text)
        case ToolUseBlock(name=name, input_json=arguments):
            return text_tokens(name) + text_tokens(arguments)
        case ToolResultBlock(content=content):
            return blocks_tokens(content)
        case ImageBlock():
            return image_tokens(block)
        case _:
            assert_never(block)


def blocks_tokens(blocks: Iterable[Block]) -> int:
    """Tokens of several blocks."""
    return sum(block_tokens(block) for block in blocks)


def tools_tokens(specs: Sequence[ToolSpec]) -> int:
    """Tokens of the descriptions of tools."""
    return sum(
        text_tokens(spec.name) + text_tokens(spec.description) + len(msgspec.json.encode(spec.input_schema)) // 4
        for spec in specs
    )
