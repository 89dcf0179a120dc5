"""Variables in definitions of servers: `${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from tools.process.environment import SECRET, URL_PASSWORD

LONGEST: Final = 64 * 1024
"""Characters of one value with its variables filled in."""
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})(?::-([^{}]{0,4000}))?\}")


class Variables(Struct):
    """Fills in the variables of one definition, and notes those it may not or cannot use."""

    environment: Mapping[str, str]
    may_have_secrets: bool
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that stand before those of the environment."""
    is_literal: bool = False
    """True where the texts have no variables: they are values already."""
    missing: list[str] = field(default_factory=list[str])
    secrets: list[str] = field(default_factory=list[str])
    """Secret variables that the definition may not have."""

    def fill(self, text: str) -> str:
        """The text with its variables; values are not searched for further ones."""
        if self.is_literal:
            return text[:LONGEST]
        return _VARIABLE.sub(self._value, text)[:LONGEST]

    def _value(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        value = self.own.get(name) or self.environment.get(name, "")
        if not value:
            if default is None:
                self.missing.append(name)
            return default or ""
        if not self.may_have_secrets and name not in self.own and (SECRET.search(name) or URL_PASSWORD.search(value)):
            self.secrets.append(name)
            return ""
        return value
