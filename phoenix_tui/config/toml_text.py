"""A text as TOML writes it."""

from __future__ import annotations


def toml_text(text: str) -> str:
    """`text` as a TOML string; JSON's rules are TOML's but for one character."""
    import json  # noqa: PLC0415 - not for the first frame

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
