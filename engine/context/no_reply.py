"""The reply by which a model says nothing on purpose (SPEC CLAW-13)."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(r"[\s*_`'\"#>~([{-]*+no_reply_*+(?!\w)", re.IGNORECASE)
"""The token ahead of everything but decoration, and not glued to a word."""


def is_no_reply(text: str) -> bool:
    """True for a reply that begins with `NO_REPLY`, whatever stands behind it."""
    return _TOKEN.match(text) is not None
