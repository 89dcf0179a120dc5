"""Work in the background of which only the newest counts."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from textual.dom import DOMNode


def run_latest(node: DOMNode, work: Callable[[], Coroutine[Any, Any, object]], group: str) -> None:
    """Run `work` in a worker of `node`; an earlier one of its group ends.

    A function, not its coroutine: one that ends before it began would leave a coroutine that nothing awaits.
    """
    node.run_worker(work, group=group, exclusive=True)  # type: ignore[arg-type]  # mypy makes Never of the result
