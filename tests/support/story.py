"""Texts of the pictures and the snapshots: one failing test is found and fixed."""

from __future__ import annotations

from typing import Final

FIX: Final = "Why does test_backoff fail? Please fix it."
TEST: Final = "python3 -m unittest -q tests.test_backoff"
READ_FIRST: Final = "I read the function and its test first."
NO_LIMIT: Final = "Nothing in `delay` looks at `LIMIT`. I run the test to be sure."
AS_EXPECTED: Final = "As expected: 2048 seconds. The limit belongs into `delay`."
REPORT: Final = """\
`delay` grew without a bound: the twelfth try would have waited **34 minutes**. It now stops at `LIMIT`.

| attempt | before | after |
|---|---:|---:|
| 0 | 0.5 s | 0.5 s |
| 6 | 32 s | 30 s |
| 12 | 2048 s | 30 s |

```python
def delay(attempt: int, base: float = 0.5) -> float:
    return min(LIMIT, base * 2**attempt)
```

- Both tests pass.
- `forward` needs no change: it asks `delay` before every try."""
REST: Final = "\n\nOne thing to decide: should `LIMIT` come from the configuration?"
CODE: Final = """The delay is asked before every try:

```python
async def send(self, request):
    for attempt in range(self.tries):
        await asyncio.sleep(self.delay(attempt))
        if (reply := await self.try_once(request)).ok:
            return reply
```

Run it with `make test`."""
"""An answer with a piece of code."""
DAWN: Final = """base = "phoenix-light"
background = "#fdf6e3"
surface = "#eee8d5"
panel = "#e8e1cc"
foreground = "#4f5b62"
you = "#6c71c4"
work = "#1f77b4"
needs_you = "#a06a00"
good = "#5f7500"
bad = "#c22a26"
quiet = "#7b8783"
"""
"""A theme of the user's own."""
