"""An invalid table of config.toml."""

from __future__ import annotations


class TableError(ValueError):
    """Raised for an invalid table; `key` is the wrong one, empty for the table itself."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key
