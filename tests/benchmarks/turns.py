"""One turn: Enter to the request on the wire, and the first token on the wire to the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.commit import commit_milliseconds
from tests.benchmarks.program import Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median, percentile, spread

CLAUDE_SUBMIT: Final = 10.0
"""ms, claude: peer table, "submit -> request, later turns"."""
CODEX_TOKEN: Final = 4.0
"""ms, codex: peer table, "first token sent -> on screen"."""
VIBE_LAST: Final = 5.0
"""ms, vibe3: peer table, "last token sent -> on screen"."""


def turns(bench: Bench) -> Iterator[Row]:
    """Run many short turns in one conversation; the first one is measured separately."""
    submits: list[float] = []
    tokens: list[float] = []
    lasts: list[float] = []
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        for _ in range(bench.rounds(30, 8) + 1):
            submit, token, last = _turn(program)
            submits.append(submit)
            tokens.append(token)
            lasts.append(last)
    commit = median(commit_milliseconds(bench, 20))
    yield Row("turn: Enter -> request, first turn", submits[0], "ms")
    row = Row("turn: Enter -> request, later turns, p50", median(submits[1:]), "ms", spread(submits[1:]))
    yield row.beside("claude", CLAUDE_SUBMIT).at_most(10 + commit, f"10 + commit {commit:.1f}")
    row = Row("turn: first token on the wire -> screen, p50", median(tokens[1:]), "ms", spread(tokens[1:]))
    yield row.beside("codex", CODEX_TOKEN).at_most(20)
    yield Row("turn: first token on the wire -> screen, p95", percentile(tokens[1:], 0.95), "ms")
    row = Row("turn: last token on the wire -> screen, p50", median(lasts[1:]), "ms", spread(lasts[1:]))
    yield row.beside("vibe3", VIBE_LAST)


def _turn(program: Program) -> tuple[float, float, float]:
    """Milliseconds: Enter to request, first token to screen, last token to screen."""
    entered = program.say("and now [[text:40,80]]")
    asked = program.asked(entered)
    shown = program.terminal.wait(rf"STARTMARK-{asked.number}\b")
    first = program.model.wait("first", number=asked.number)
    ended = program.terminal.wait(rf"ENDMARK-{asked.number}\b")
    done = program.model.wait("done", number=asked.number)
    program.terminal.settle(0.3)
    return (asked.at - entered) * 1000, (shown - first.at) * 1000, (ended - done.at) * 1000
