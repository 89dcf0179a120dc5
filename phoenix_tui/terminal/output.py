"""The last line before the terminal: only sequences that draw may pass (FAULTS 3.4).

Text is cleaned where it enters; this filter catches the rest. Clipboard, title, links of others, device strings and all
other sequences that act on a terminal are dropped from every frame.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

# SGR, cursor position, erasing, moved lines and their region; private modes; kitty keys; queries; cursor shape.
_CSI: Final = r"\[(?:[0-9;:]*[mHABCDJKLMXr]|\?[0-9;]*[hl]|[><]?[0-9;]*u|\?[0-9;]*\$p|6n|[0-9] q)"
LINK_ID: Final = os.urandom(6).hex()
"""Names the links of this process, so that no text from outside can hold one."""
_URL: Final = r"https?://[!#-&(-;=?-Z\[\]_a-z~]{1,2000}"
"""Printable ASCII without quotes, `<`, `>`, `\\`, `^`, a backtick, braces and `|`."""
_LINK: Final = rf"\]8;id={LINK_ID};(?:{_URL})?\x1b\\"
_DRAWS: Final = rf"(?:{_CSI}|{_LINK}|\\)"  # the last one ends a link
_STRINGS: Final = rf"\x1b(?!{_LINK})[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
_CONTROLS: Final = r"[\x00-\x06\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
_FORBIDDEN: Final = rf"{_STRINGS}|\x1b(?!{_DRAWS})(?:\[[0-9;:<=>?]*[ -/]*[@-~])?|{_CONTROLS}"
# Every frame is tested for sequences to remove, nearly always without a match: two searches with a fixed
# beginning each take a third of the time of the pattern above, which removes them.
_CONTROL: Final = re.compile(_CONTROLS)
_FOREIGN: Final = re.compile(rf"\x1b(?!{_DRAWS})")
_POINTER: Final = r"\x1b\]22;[a-z-]*(?:\x07|\x1b\\)"
"""Pattern that, like that of forbidden sequences, is compiled with its first use: no first frame has one."""


def safe_link(address: str) -> str:
    """The address as that of a link: http or https, ASCII, without a user name; empty for any other."""
    host = address.partition("://")[2].partition("/")[0]
    return address if re.fullmatch(_URL, address) and "@" not in host else ""


def link_to(address: str) -> str:
    """The sequence with which the link to a safe address begins; empty: with which a link ends (OSC 8)."""
    return f"\x1b]8;id={LINK_ID};{address}\x1b\\"


def drawing_only(written: str) -> str:
    """`written` with every sequence removed that does more than draw.

    A write that is nothing but a pointer sequence is Textual's own and passes.
    """
    if _CONTROL.search(written) is None and _FOREIGN.search(written) is None:
        return written
    if re.fullmatch(_POINTER, written):
        return written
    return re.sub(_FORBIDDEN, "", written)


MARKS: Final = re.compile("[\U000f0000-\U000ffffd]")
"""Characters for images that the driver draws; a plane that no text uses."""
PLACEHOLDER: Final = "\U0010eeee"
"""Kitty's: a cell whose colour names an image and whose marks name row and column."""


def with_overlays(drawn: str, overlays: Mapping[str, str]) -> str:
    """`drawn` with each mark replaced by a blank and its sequence, the cursor left where it was behind the blank."""
    return MARKS.sub(lambda found: overlays.get(found[0], " "), drawn)
