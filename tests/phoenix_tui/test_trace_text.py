"""Rows of a trace: each as wide as asked for, each bar inside the time line, in words where they are read aloud."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from engine.records.traces import SpanStatus, Trace
from phoenix_tui.text.trace_text import WITH_TOKENS, bar_place, matches, spell_lines, trace_lines, trace_rows
from tests.support.fake_traces import some_traces

TREE = some_traces("c").trees["run-2"]


@pytest.mark.parametrize("width", [40, 58, 78, 118, 198])
def test_every_row_has_the_same_width(width: int) -> None:
    wide = replace(TREE.spans[1], name="模型" * 60 + "\x1b[31m")
    trace = Trace((*TREE.spans, wide), TREE.left_out)
    rows = trace_rows(trace, trace.spans, width, plain=False)
    widths = {
        2 + cell_len(row.label) + 4 + cell_len(row.before + row.bar + row.after) + cell_len(row.figures) for row in rows
    }
    assert len(widths) == 1
    assert max(widths) <= max(width, 40)
    assert ("→" in rows[1].figures) is (width >= WITH_TOKENS)


@given(
    start=st.floats(-1e9, 4e9),
    seconds=st.floats(0, 1e9),
    begin=st.floats(0, 4e9),
    length=st.floats(0, 1e9),
    width=st.integers(1, 300),
)
def test_a_bar_lies_on_the_time_line(start: float, seconds: float, begin: float, length: float, width: int) -> None:
    span = replace(TREE.spans[1], started_at=start, seconds=seconds)
    first, cells = bar_place(span, begin, begin + length, width)
    assert 0 <= first < width
    assert 1 <= cells <= width - first


def test_lines_that_are_read_aloud_have_words_in_place_of_bars() -> None:
    lines = spell_lines(TREE)
    assert lines[0].startswith("success · 42.4 s · 3 model calls, 2 tool calls shown · 28k in, 1.0k out · $0.06")
    assert lines[1] == "llm sonnet: ok, 2.8 s, 9.2k tokens in, 340 out, $0.02"
    assert lines[2] == "tool bash: error, 12.5 s"
    assert lines[6] == "    llm haiku: ok, 9.0 s, 9.2k tokens in, 340 out, $0.02"
    assert lines[-1] == "12 more spans not shown."
    assert not any("━" in line for line in lines)


def test_a_terminal_without_utf_8_gets_plain_bars() -> None:
    lines = trace_lines(TREE, 80, plain=True)
    assert lines[3].startswith("x   tool bash")
    assert "=" in lines[3]


def test_a_filter_finds_kinds_names_ends_and_errors() -> None:
    def found(*words: str) -> list[str]:
        return [span.name for span in TREE.spans if matches(span, words)]

    assert found("tool") == ["bash", "spawn_agents"]
    assert found("error") == ["bash"]
    assert found("no rule") == ["bash"]
    assert found("llm", "haiku") == ["haiku"]
    assert found(SpanStatus.OK.value, "agent", "explore") == ["explore"]
