"""Sizes of memory as they are written in settings."""

from __future__ import annotations

import re
from typing import Final

AUTO: Final = "auto"
LEAST_MEGABYTES: Final = 256
"""Phoenix itself takes 60 to 80."""
ALLOWED: Final = f"auto, 0 for no limit, or at least {LEAST_MEGABYTES} (MB), such as 2048 or 4 GB"
_SIZE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(MB|GB|M|G|)", re.IGNORECASE | re.ASCII)


def megabytes(text: str) -> int | None:
    """`4 GB` or `2048` in MB, 0 for no limit; None for an invalid or too small size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    number = int(float(found[1]) * (1024 if found[2][:1] in {"G", "g"} else 1))
    return number if number >= LEAST_MEGABYTES or float(found[1]) == 0 else None
