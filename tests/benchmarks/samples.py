"""Texts of the model of the benchmarks: Markdown of every kind, in pieces of about four characters."""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(r"\s*\S{1,4}|\s+")
_PART: Final = """\
## Section {n}: what was found

The retry loop in `client.py` waits **{n} seconds** between attempts, which is *not* what the issue asks for. See
[the notes](https://example.org/{n}) for the reasoning; the short version stands below.

- the first attempt is immediate
- later ones double, with jitter:
  1. half of the wait is fixed
  2. the other half is random
- after attempt {n} it gives up

```python
def wait(attempt: int, base: float = 0.5) -> float:
    \"\"\"Seconds before this attempt.\"\"\"
    fixed = base * 2 ** attempt / 2
    return fixed + random.uniform(0, fixed)  # part {n}
```

| case | before | after |
|---|---:|---:|
| refused | {n} | 1 |
| timed out | 12 | 3 |

> A server that says `Retry-After` is always believed, whatever the loop had in mind.

"""


def markdown(number: int) -> str:
    """Part `number` of an answer, about 230 tokens."""
    return _PART.replace("{n}", str(number))


def tokens(count: int) -> list[str]:
    """About `count` tokens of Markdown."""
    found: list[str] = []
    number = 1
    while len(found) < count:
        found += _PIECE.findall(markdown(number))
        number += 1
    return found[:count]


def plain_tokens(count: int) -> list[str]:
    """`count` words."""
    return [f"word{number} " for number in range(count)]
