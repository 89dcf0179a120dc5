"""Variables in definitions of servers: `${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from tools.known_secrets import SECRETS
from tools.process.environment import is_secret

LONGEST: Final = 64 * 1024
"""Characters of one value with its variables filled in."""
_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
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
        if name not in self.own and is_secret(name, value):
            if not self.may_have_secrets:
                self.secrets.append(name)
                return ""
            SECRETS.add_value(value)
        return value

    def fill_table(self, table: Mapping[str, str]) -> dict[str, str]:
        """The values of an `env` or `headers` table; those under names of secrets are kept out of logs."""
        filled = {name: self.fill(text) for name, text in table.items()}
        for name, value in filled.items():
            if self.may_have_secrets and (is_secret(name, value) or name.lower() in _SECRET_HEADERS):
                SECRETS.add_value(value.rpartition(" ")[2] if name.lower() in _SECRET_HEADERS else value)
        return filled
