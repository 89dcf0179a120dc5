"""`@` in a folder of 20,000 files: from the key to the popup that answers it, and typing on meanwhile."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from phoenix_tui.text.fuzzy import Corpus, with_folders
from tests.benchmarks.bench import Bench
from tests.benchmarks.program import READY, Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median, percentile, spread

FILES: Final = 20_000
SHOWN: Final = 8
"""Rows of the popup."""
_WORDS: Final = """app main test core data model view list item user auth parse build index widget config store engine
queue text line paint frame key driver loop step state event"""
WORDS: Final = tuple(re.findall(r"\w+", _WORDS))


def mention(bench: Bench) -> Iterator[Row]:
    """The first `@` lists the folder; each letter after it narrows what was listed."""
    home = fresh_home(bench.folder)
    folder = home / "work"
    corpus = Corpus(with_folders(sorted(_plant(folder))))
    with serving() as model, running(model, home) as program:
        program.terminal.resize(100, 40)
        sent = program.terminal.write("see @")
        first = (program.terminal.wait(rf"\+{50 - SHOWN} more") - sent) * 1000
        program.terminal.write("\x15")
        program.terminal.wait(READY)
        times: list[float] = []
        for query in _queries(corpus, bench.rounds(60, 15)):
            times += _typed(program, corpus, query)
    yield Row("@: the first one, 20,000 files listed", first, "ms").at_most(1500)
    yield Row("@: key to the popup that answers it, p50", median(times), "ms", spread(times)).at_most(50)
    yield Row("@: key to the popup that answers it, p99", percentile(times, 0.99), "ms").at_most(150)


def _plant(folder: Path) -> set[str]:
    chance, names = random.Random(1), set[str]()
    while len(names) < FILES:
        parts = [chance.choice(WORDS[:12]), chance.choice(WORDS), chance.choice(WORDS[5:15])]
        base = "_".join(chance.choice(WORDS) for _ in range(chance.randint(1, 3)))
        names.add("/".join([*parts[: chance.randint(1, 3)], f"{base}{chance.randint(0, 999)}.py"]))
    for parent in {folder / Path(name).parent for name in names}:
        parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return names


def _queries(corpus: Corpus, count: int) -> list[str]:
    """Text that a person types for a known file: the beginning of its name, or its words' beginnings."""
    chance = random.Random(2)
    queries: list[str] = []
    for name in chance.sample(corpus.names, count):
        words = name.rstrip("/").rsplit("/", 1)[-1].removesuffix(".py").split("_")
        queries.append("".join(word[:2] for word in words) if len(words) > 1 else words[0][:5])
    return queries


def _typed(program: Program, corpus: Corpus, query: str) -> list[float]:
    """Milliseconds for each letter that brings a new row into the popup."""
    terminal, times = program.terminal, list[float]()
    terminal.write("@")
    terminal.wait(r"┃ @")
    terminal.settle(0.2)
    before = {one.name for one in corpus.search("", SHOWN)}
    for end in range(1, len(query) + 1):
        after = [one.name for one in corpus.search(query[:end], SHOWN)]
        fresh = next((name for name in after if name not in before), "")
        sent = terminal.write(query[end - 1])
        if fresh:
            times.append((terminal.wait(rf"@{re.escape(fresh)}(?!\S)", 5) - sent) * 1000)
        terminal.drain(0.08)
        before = set(after)
    terminal.write("\x15")
    terminal.wait(READY)
    terminal.settle(0.2)
    return times
