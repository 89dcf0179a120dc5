"""The todo list and the plan in lines."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.plan import plan
from phoenix_tui.features.todo import todo
from phoenix_tui.linear.context import LineCommand

RUNS: Final[dict[str, LineCommand]] = {"plan": plan, "todo": todo}
