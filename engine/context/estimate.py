"""Token counts estimated from texts and sizes (SPEC CLAW-22), always shown with `~`, and their calibration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, assert_never

import msgspec
from msgspec import Struct, field

from engine.machine.messages import Block, ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.machine.views import CHARACTERS_PER_TOKEN
from engine.ports import ModelMessage
from tools.contract import ToolSpec

PIXELS_PER_TOKEN = 750
"""Factor for images from Anthropic's documentation."""
LARGEST_IMAGE = 1_600
"""Tokens of one image after the provider has shrunk it."""


_PIECES: Final = tuple(
    (re.compile(pattern), weight)
    for pattern, weight in (
        (r"[A-Z]?[a-z]{1,15}|[A-Z]{1,16}", 1.17),
        (r"[0-9]{1,3}", 1.1),
        (r"\s{2,64}|\n", 0.73),
        (r"[!-/:-@\[-`{-~]{1,16}", 0.9),
    )
)
"""Pieces of ASCII that tokenizers keep together, and the tokens of one."""
_IDEOGRAPHS: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]")
_OTHERS: Final = re.compile(r"[^\x00-\x7f]")
IDEOGRAPH, OTHER = 0.85, 0.45
"""Tokens of a Chinese, Japanese or Korean character, and of any other outside ASCII."""
SAMPLED: Final = 8_192
"""Characters of a text that are looked at; of a longer one as many, in eight pieces."""


def text_tokens(text: str) -> int:
    """Tokens of a text; at least one where there is any."""
    size = len(text)
    if size <= SAMPLED:
        return max(round(_weigh(text)), bool(text))
    piece = SAMPLED // 8
    step = (size - piece) / 7
    sample = [text[int(number * step) : int(number * step) + piece] for number in range(8)]
    return round(sum(map(_weigh, sample)) * size / SAMPLED)


def _weigh(text: str) -> float:
    total = sum(len(pattern.findall(text)) * weight for pattern, weight in _PIECES)
    if text.isascii():
        return total
    ideographs = len(_IDEOGRAPHS.findall(text))
    return total + ideographs * IDEOGRAPH + (len(_OTHERS.findall(text)) - ideographs) * OTHER


def rough_tokens(text: str) -> int:
    """Tokens of a text by its length alone, for what is counted at every step of a long run."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def block_tokens(block: Block, count: Callable[[str], int] = text_tokens) -> int:
    """Tokens of one block of a message, including nested blocks; `count` counts its texts."""
    match block:
        case TextBlock(text=text):
            return count(text)
        case ThinkingBlock(text=text, signature=signature, redacted=redacted):
            return count(signature if redacted else text)
        case ToolUseBlock(name=name, input_json=arguments):
            return count(name) + count(arguments)
        case ToolResultBlock(content=content):
            return blocks_tokens(content, count)
        case ImageBlock():
            return min(max(block.width * block.height // PIXELS_PER_TOKEN, 1), LARGEST_IMAGE)
        case _:
            assert_never(block)


def blocks_tokens(blocks: Iterable[Block], count: Callable[[str], int] = text_tokens) -> int:
    """Tokens of several blocks."""
    return sum(block_tokens(block, count) for block in blocks)


def message_tokens(message: ModelMessage) -> int:
    """Tokens of a message by the lengths of its texts."""
    return blocks_tokens(message.blocks, rough_tokens)


def tools_tokens(specs: Sequence[ToolSpec]) -> int:
    """Tokens of the descriptions of tools."""
    return sum(
        text_tokens(spec.name)
        + text_tokens(spec.description)
        + text_tokens(msgspec.json.encode(spec.input_schema).decode())
        for spec in specs
    )


SMALLEST, LARGEST = 0.5, 3.0
"""Bounds of a ratio: a server that counts otherwise counts something else."""
SHARE: Final = 0.3
"""Weight of the newest reply in the running ratio."""
MOST_MODELS: Final = 200
"""Models that are remembered; the one learned about first is forgotten."""


class Calibration(Struct, eq=False):
    """Ratios by model reference, for all conversations of this process."""

    _ratios: dict[str, float] = field(default_factory=dict[str, float])

    def ratio(self, model: str) -> float:
        """Real tokens for each estimated one; 1.0 before the first reply."""
        return self._ratios.get(model, 1.0)

    def learn(self, model: str, estimated: int, real: int) -> None:
        """Take one request: its estimated tokens, and those that the provider counted; 0 of either teaches nothing."""
        if estimated <= 0 or real <= 0:
            return
        newest = min(max(real / estimated, SMALLEST), LARGEST)
        before = self._ratios.get(model)
        if before is None and len(self._ratios) >= MOST_MODELS:
            del self._ratios[next(iter(self._ratios))]
        self._ratios[model] = newest if before is None else before + SHARE * (newest - before)
