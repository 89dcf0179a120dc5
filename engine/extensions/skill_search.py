"""Finds skills by words of their names and descriptions, where there are too many to know them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.ports.extensions import Invocable
from tools.wording import one_line

FROM: Final = 16
"""Skills from which the tool can search."""
MOST_FOUND: Final = 10
LONGEST: Final = 300
"""Characters of a description."""
LONGEST_QUERY: Final = 1_000
NONE: Final = "No skill has these words. Try others, or one word alone."


def found_skills(skills: Iterable[Invocable], query: str) -> str:
    """The best matches, a line each: most of the words first, and words of a name before those of a description."""
    words = query.lower()[:LONGEST_QUERY].split()
    ranked = [(score, one) for one in skills if one.for_models and (score := _score(one, words))]
    ranked.sort(key=lambda pair: (-pair[0], pair[1].name))
    lines = [one_line(f"{one.name}: {one.description}", LONGEST) for _, one in ranked[:MOST_FOUND]]
    if left := len(ranked) - len(lines):
        lines.append(f"and {left} more; use more words")
    return "\n".join(lines) or NONE


def _score(skill: Invocable, words: Iterable[str]) -> int:
    name, meaning = skill.name.lower(), skill.description.lower()
    return sum(3 if word in name else 2 if word in meaning else 0 for word in words)
