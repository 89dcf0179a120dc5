"""The list of models: a letter of its filter, one drawing, and opening it with 1,000 models and no network."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from engine.ports import ModelInfo
from phoenix_tui.features.model import ModelRow, all_rows, narrow_rows, provider_rows
from phoenix_tui.modals.model_sheet import ModelLines
from phoenix_tui.models.offers import LISTS_FILE, KeptList, ProviderOffer, ProviderState
from tests.benchmarks.bench import Bench
from tests.benchmarks.program import READY, fresh_home, running, serving
from tests.benchmarks.rows import Row, median, percentile, spread

USUAL: Final = 1_000
MANY: Final = 10_000
NARROWING_MS: Final = 5.0
OPENING_MS: Final = 250.0
ADDRESS: Final = "https://models.invalid/v1"
OFFLINE: Final = {"BENCH_KEY": "key-0123456789", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
TABLE: Final = f'[providers.openrouter]\npreset = "openrouter"\nbase_url = "{ADDRESS}"\napi_key_env = "BENCH_KEY"\n'
QUERIES: Final = ("m", "mo", "model-7", "model-77 tools", "free image", "nothing-has-this")


def model_list(bench: Bench) -> Iterator[Row]:
    """The filter over rows in memory beside a bare search of names, then the real program."""
    rounds = bench.rounds(200, 40)
    for count in (USUAL, MANY):
        models = _models(count)
        offer = ProviderOffer("openrouter", ProviderState.READY, "", models)
        made = _milliseconds(partial(provider_rows, offer), bench.rounds(20, 5))
        yield Row(f"models: rows of {count:,}, CPU", median(made), "ms", spread(made))
        yield _letter(all_rows([provider_rows(offer)], []), [one.reference for one in models], rounds)
    rows = all_rows([provider_rows(ProviderOffer("openrouter", ProviderState.READY, "", _models(MANY)))], [])
    drawn = _milliseconds(lambda: ModelLines(118, "", []).window(rows, MANY // 2, 45), rounds)
    yield Row(f"models: drawing 45 of {MANY:,}, CPU", median(drawn), "ms", spread(drawn)).at_most(NARROWING_MS)
    yield _opening(bench)


def _letter(rows: list[ModelRow], names: list[str], rounds: int) -> Row:
    """The slowest of some queries, beside a search of each name for its letters."""
    times = {query: _milliseconds(partial(narrow_rows, rows, query), rounds) for query in QUERIES}
    worst = max(QUERIES, key=lambda query: percentile(times[query], 0.99))
    bare = _milliseconds(lambda: [name for name in names if worst in name], rounds)
    row = Row(
        f"models: a letter of the filter among {len(rows):,}, p99, CPU",
        percentile(times[worst], 0.99),
        "ms",
        f"{worst!r} {spread(times[worst])}",
    )
    row = row.beside("bare search", median(bare))
    return row.at_most(NARROWING_MS) if len(rows) == USUAL else row


def _opening(bench: Bench) -> Row:
    """Enter behind /model to the list of 1,000 models, beside the sheet of themes; no provider can be reached."""
    home = fresh_home(bench.folder)
    _plant(home / "phoenix")
    times: dict[str, list[float]] = {"model": [], "theme": []}
    shows = {"model": r"Model   1 / 1,\d\d\d", "theme": r"phoenix-light"}
    with serving() as model, running(model, home, settings=OFFLINE) as program:
        terminal = program.terminal
        terminal.resize(100, 40)
        for _ in range(bench.rounds(25, 8)):
            for command, pattern in shows.items():
                terminal.write(f"/{command}")
                terminal.wait(rf"/{command}")
                terminal.settle(0.4)
                sent = terminal.write("\r")
                times[command].append((terminal.wait(pattern) - sent) * 1000)
                terminal.settle(0.3)
                terminal.write("\x1b")
                terminal.wait(READY)
                terminal.settle(0.3)
    first, *warm = times["model"]
    note = f"{spread(warm)}, the first one {first:.0f} ms"
    row = Row(f"models: Enter to the list of {USUAL:,}, no network, p50", median(warm), "ms", note)
    return row.beside("sheet of themes", median(times["theme"][1:])).at_most(OPENING_MS)


def _plant(folder: Path) -> None:
    """A list that an earlier process kept."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(TABLE)
    kept = {"openrouter": KeptList(time.time(), ADDRESS, _models(USUAL))}
    (folder / LISTS_FILE).write_bytes(msgspec.json.encode(kept))


def _models(count: int) -> tuple[ModelInfo, ...]:
    """The same models every time, with all that a service can say."""
    chance = random.Random(5)
    return tuple(
        ModelInfo(
            "openrouter",
            f"maker-{number % 60}/model-{number}{':free' if number % 7 == 0 else ''}",
            chance.choice((0, 131_072, 1_048_576)),
            vision=chance.choice((True, False, None)),
            tools=chance.choice((True, False, None)),
            reasoning=chance.choice((True, False, None)),
            price_in=chance.choice((None, 0.0, 0.4)),
            price_out=chance.choice((None, 0.0, 1.75)),
        )
        for number in range(count)
    )


def _milliseconds(work: Callable[[], object], rounds: int) -> list[float]:
    times: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append((time.process_time() - began) * 1000)
    return times
