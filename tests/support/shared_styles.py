"""Style sheets that all apps of the tests share: Textual parses every one anew for each app."""

from __future__ import annotations

from typing import Any, Final

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet


class Kept(dict[Any, Any]):
    """Style sheets that Textual keeps of one app, by the text and place of each."""

    def __init__(self, variables: dict[str, str]) -> None:
        super().__init__()
        self.variables = variables

    def clear(self) -> None:
        """Stay: an app that takes another theme gets what is kept for that one."""


KEPT: Final[dict[frozenset[tuple[str, str]], Kept]] = {}
"""Style sheets by the values of the variables, which are those of a theme."""


def share_styles() -> None:
    """Let the sheets of all apps keep what they parsed in one place."""
    parse: Any = Stylesheet._parse_rules

    def shared(sheet: Any, *where: Any, **more: Any) -> Any:
        kept = sheet._parse_cache
        if not isinstance(kept, Kept) or kept.variables is not sheet._variables:
            kept = KEPT.setdefault(frozenset(sheet._variables.items()), Kept(sheet._variables))
            sheet._parse_cache, sheet._variables = kept, kept.variables
        return parse(sheet, *where, **more)

    setattr(Stylesheet, "_parse_rules", shared)  # noqa: B010 - Textual has no door for it
    setattr(RuleSet, "__hash__", object.__hash__)  # noqa: B010 - the same in C: each style of a widget asks 100 rules
