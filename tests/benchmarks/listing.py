"""Lists and panes: conversations, files named with @, models, and panes that open."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from engine.machine.states import AwaitingLlm, Requesting, Run
from engine.ports import ModelInfo
from engine.records import ConversationQuery, ConversationSummary
from engine.store import StorePaths, open_store
from phoenix_tui.features.model import ModelRow, all_rows, narrow_rows, provider_rows
from phoenix_tui.modals.model_sheet import ModelLines
from phoenix_tui.models.offers import LISTS_FILE, KeptList, ProviderOffer, ProviderState
from phoenix_tui.text.fuzzy import Corpus, with_folders
from phoenix_tui.widgets.roster import ListModel, Live
from screenshots.library import make_library
from tests.benchmarks.program import READY, Program, fresh_home, running, serving
from tests.benchmarks.rows import Bench, Row, cpu, median, percentile, spread
from tests.benchmarks.turns import VIBE_ECHO, type_keys

MANY: Final = 500
WORKING: Final = 20
HEIGHT: Final = 58
LONG: Final = 50_000


def listing(bench: Bench) -> Iterator[Row]:
    """A library of 500 conversations, one of 50,000 messages, 20 of them at work."""
    paths = StorePaths.under(bench.folder / "listing")
    make_library(paths, bench.folder / "src", time.time(), MANY, LONG)
    rounds = bench.rounds(15, 5)
    read, summaries = asyncio.run(_read(paths, rounds))
    yield Row(
        f"list: {MANY} conversations from the database", median(read), "ms", spread(read), limit=50, budget="50 ms"
    )
    model, live = _model(), _at_work(summaries)
    changes = [_milliseconds(lambda: _change(model, summaries, live)) for _ in range(rounds)]
    yield Row(f"list: one change among {MANY}, CPU", median(changes), "ms", spread(changes), limit=5, budget="5 ms")
    found = [_milliseconds(lambda: _find(model, "retry")) for _ in range(rounds)]
    yield Row(
        f"list: a letter of the filter among {MANY}, CPU", median(found), "ms", spread(found), limit=5, budget="5 ms"
    )


async def _read(paths: StorePaths, rounds: int) -> tuple[list[float], list[ConversationSummary]]:
    store = await open_store(paths)
    taken: list[float] = []
    found: list[ConversationSummary] = []
    for _ in range(rounds):
        began = time.perf_counter()
        found = await store.conversations(ConversationQuery(limit=MANY))
        taken.append((time.perf_counter() - began) * 1000)
    await store.close()
    return taken, found


def _model() -> ListModel:
    model = ListModel()
    model.resize(HEIGHT)
    return model


def _at_work(summaries: list[ConversationSummary]) -> dict[str, Live]:
    state = AwaitingLlm(1, Run("run", 5), Requesting())
    return {one.id: Live(state, time.monotonic(), began=float(n)) for n, one in enumerate(summaries[:WORKING])}


def _change(model: ListModel, summaries: list[ConversationSummary], live: dict[str, Live]) -> None:
    model.fill(summaries, live, summaries[0].id)
    model.arrange()
    assert len(model.visible()) == HEIGHT


def _find(model: ListModel, text: str) -> None:
    model.text = text
    model.arrange()
    assert model.visible()


def _milliseconds(action: Callable[[], None]) -> float:
    began = time.process_time()
    action()
    return (time.process_time() - began) * 1000


PANES: Final = 3
RATE: Final = 80
NEXT: Final = b"\x1b[1;3C"
FOURTH: Final = "four"


def panes(bench: Bench) -> Iterator[Row]:
    """Cost of three visible streams, compared with one visible of three; keys meanwhile."""
    seconds, count = bench.rounds(10, 5), bench.rounds(150, 40)
    tokens = RATE * (seconds + count // 8 + 40)
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.terminal.resize(200, 60)
        program.terminal.settle()
        _stream(program, "one", tokens)
        for name in ("two", "three"):
            program.terminal.write("\x0e")
            program.terminal.wait(READY)
            _stream(program, name, tokens)
        hidden = _share(program, seconds)
        for name in ("one", "two"):
            _beside(program, name)
        share, sent = _share(program, seconds), program.terminal.bytes_written
        began = time.monotonic()
        echo = type_keys(program, count)
        written = (program.terminal.bytes_written - sent) / (time.monotonic() - began) / 1000
    row = Row("panes, 3 at 80 tok/s: CPU of a core", share, "%", f"{seconds} s, 200x60")
    yield row.beside("one in sight", hidden).at_most(30)
    yield Row("panes, 3 at 80 tok/s: written to the terminal", written, "kB/s")
    yield Row("panes: echo at 3 x 80 tok/s, p50", echo.p50, "ms", echo.note).beside("vibe3, 1", VIBE_ECHO[0])
    yield Row("panes: echo at 3 x 80 tok/s, p99", echo.p99, "ms").beside("vibe3, 1", VIBE_ECHO[1]).at_most(50)
    yield Row("panes: not seen on the screen", echo.missed, "", f"{count} keys").at_most(0)


def opening(bench: Bench) -> Iterator[Row]:
    """Time from the key to another pane having the dock, with two idle conversations."""
    times: list[float] = []
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.terminal.resize(200, 60)
        program.turn("one [[text:10]]")
        program.terminal.write("\x0e")
        program.terminal.wait(READY)
        program.turn("two [[text:10]]")
        _beside(program, "one")
        for number in range(bench.rounds(30, 10)):
            program.terminal.settle(0.2)
            sent = program.terminal.write(NEXT)
            times.append((program.terminal.wait(rf"› *\S+ +{('two', 'one')[number % 2]}") - sent) * 1000)
    yield Row("panes: key to another pane, median", sorted(times)[len(times) // 2], "ms", f"n{len(times)}").at_most(60)


def _stream(program: Program, name: str, tokens: int) -> None:
    program.asked(program.say(f"{name} [[md:{tokens},{RATE}]]"))
    program.terminal.drain(1.0)


def _beside(program: Program, name: str) -> None:
    program.terminal.write(f"/split {name} [[")
    program.terminal.drain(0.5)
    program.terminal.write("\r")
    program.terminal.drain(1.0)


def _share(program: Program, seconds: float) -> float:
    spent, began = cpu(program.pid), time.monotonic()
    time.sleep(seconds)
    return (cpu(program.pid) - spent) / (time.monotonic() - began) * 100


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


USUAL: Final = 1_000
MODELS: Final = 10_000
NARROWING_MS: Final = 5.0
OPENING_MS: Final = 250.0
ADDRESS: Final = "https://models.invalid/v1"
OFFLINE: Final = {"BENCH_KEY": "key-0123456789", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
TABLE: Final = f'[providers.openrouter]\npreset = "openrouter"\nbase_url = "{ADDRESS}"\napi_key_env = "BENCH_KEY"\n'
QUERIES: Final = ("m", "mo", "model-7", "model-77 tools", "free image", "nothing-has-this")


def model_list(bench: Bench) -> Iterator[Row]:
    """The filter over rows in memory beside a bare search of names, then the real program."""
    rounds = bench.rounds(200, 40)
    for count in (USUAL, MODELS):
        models = _models(count)
        offer = ProviderOffer("openrouter", ProviderState.READY, "", models)
        made = _list_milliseconds(partial(provider_rows, offer), bench.rounds(20, 5))
        yield Row(f"models: rows of {count:,}, CPU", median(made), "ms", spread(made))
        yield _letter(all_rows([provider_rows(offer)], []), [one.reference for one in models], rounds)
    rows = all_rows([provider_rows(ProviderOffer("openrouter", ProviderState.READY, "", _models(MODELS)))], [])
    drawn = _list_milliseconds(lambda: ModelLines(118, "", []).window(rows, MODELS // 2, 45), rounds)
    yield Row(f"models: drawing 45 of {MODELS:,}, CPU", median(drawn), "ms", spread(drawn)).at_most(NARROWING_MS)
    yield _opening(bench)


def _letter(rows: list[ModelRow], names: list[str], rounds: int) -> Row:
    """The slowest of some queries, beside a search of each name for its letters."""
    times = {query: _list_milliseconds(partial(narrow_rows, rows, query), rounds) for query in QUERIES}
    worst = max(QUERIES, key=lambda query: percentile(times[query], 0.99))
    bare = _list_milliseconds(lambda: [name for name in names if worst in name], rounds)
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
    _plant_models(home / "phoenix")
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


def _plant_models(folder: Path) -> None:
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


def _list_milliseconds(work: Callable[[], object], rounds: int) -> list[float]:
    times: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append((time.process_time() - began) * 1000)
    return times
