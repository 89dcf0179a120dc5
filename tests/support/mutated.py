"""Valid messages with something wrong in them: the same on every run."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1e308,
    10**30,
    "",
    "x" * 2_000,
    "\x1b[31m\u202e",
    "../../etc/passwd",
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"type": 7, "a": {"b": [1, {}]}},
    ["x", 1, {"type": "text"}],
)


def mutated(messages: Sequence[Any], count: int, seed: int, kept: frozenset[str] = frozenset()) -> Iterator[Any]:
    """`count` of the messages in turn, each with one to three odd values, lost or added keys; `kept` keys stay."""
    chance = random.Random(seed)
    for number in range(count):
        message = copy.deepcopy(messages[number % len(messages)])
        for _ in range(chance.randint(1, 3)):
            _mutate(message, chance, kept)
        yield message


def broken_lines(message: Any) -> Iterator[bytes]:
    """Lines that are no message at all: cut, not UTF-8, endless numbers, deep nesting, a NUL."""
    line = json.dumps(message).encode()
    yield line[: len(line) // 2]
    yield line.replace(b'"', b"'")
    yield b"\xff\xfe" + line
    yield line + b"\x00"
    yield b'{"a":' + b"9" * 5_000 + b"}"
    yield b"[" * 50_000
    yield b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    yield b'{"a": "\\ud800"}'


def _mutate(message: Any, chance: random.Random, kept: frozenset[str]) -> None:
    places = [place for place in _places(message) if place[1] not in kept]
    if not places:
        return
    holder, key = chance.choice(places)
    if isinstance(holder, dict) and chance.random() < 0.2:
        del holder[key]
    elif isinstance(holder, dict) and chance.random() < 0.2:
        holder[chance.choice(("", "type", "id", "x" * 500))] = copy.deepcopy(chance.choice(ODD))
    else:
        holder[key] = copy.deepcopy(chance.choice(ODD))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Containers and keys of everything inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in items for place in ((value, key), *_places(inner))]
