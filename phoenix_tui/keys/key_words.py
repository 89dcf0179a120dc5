"""Words of keys, as people write them."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, str]] = {
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "question_mark": "?",
    "underscore": "_",
    "asterisk": "*",
    "vertical_line": "|",
    "delete": "Del",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "comma": ",",
    "full_stop": ".",
    "minus": "-",
    "plus": "+",
    "equals_sign": "=",
}
"""Words by the name of a key in Textual; any other key is called by that name."""
