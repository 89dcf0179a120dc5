"""Rows about hooks below a call, free of a reason that the result of the call gives already."""

from __future__ import annotations

from typing import Final

from tools.wording import one_line

REFUSED_BY_HOOK: Final = "A hook blocked "
"""Beginning of the result of a call that a hook did not let run."""
BLOCKED: Final = "blocked"
"""Outcome in the row of a hook that forbade something."""
LOOKED_AT: Final = 4_000
"""Characters of a result that may repeat a reason."""


def said_once(row: str, result: str) -> str:
    """The row of a hook that blocked, without the reason behind its colon where the result contains it."""
    if f" · {BLOCKED} · " not in row:
        return row
    head, _, reason = row.partition(f" · {BLOCKED} · ")
    facts, colon, why = reason.partition(": ")
    given = one_line(result[:LOOKED_AT])
    if not colon or why.removesuffix("…") not in given:
        return row
    return f"{head} · {BLOCKED} · {facts}"
