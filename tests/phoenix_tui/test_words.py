"""Words, rows and plots that front ends make of values."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from textual.content import Content

from engine.machine.views import CompactionCause, CompactionFacts, CompactionKind
from engine.ports.files import CheckpointLimits, CheckpointUse, Coverage, FileChange, FileKind, FileState
from engine.ports.mcp import ServerState
from engine.records import StoredCompaction
from engine.records.runs import CallPurpose, CallSum, Totals
from engine.records.traces import SpanStatus, Trace
from engine.rewind.rewind import PreviewFile
from phoenix_tui.config.settings import KEYS, in_words
from phoenix_tui.features.changes import ShownFile
from phoenix_tui.modals.rewind_sheet import change_row, file_row, preview_row
from phoenix_tui.modals.rows_sheet import heading, whole_facts
from phoenix_tui.modals.statistics_sheet import WEEKS, days_until, draw_bar, draw_heat_map, draw_sparkline, squeeze
from phoenix_tui.text.context_text import SHOWN, compaction_line, compaction_lines, describe_unrestored, use_in_words
from phoenix_tui.text.server_text import row, share_words, state_words
from phoenix_tui.text.shell_words import DiffPassage, fence, passages, quote_change
from phoenix_tui.text.statistics_text import PURPOSES, call_lines
from phoenix_tui.text.trace_text import WITH_TOKENS, bar_place, matches, spell_lines, trace_lines, trace_rows
from tests.support.fake_mcp import a_server
from tests.support.fake_traces import some_traces
from tests.support.mcp_hubs import hub_in, stdio
from tools.contract import DiffDisplay

MEGABYTE = 1024 * 1024


def test_use_names_the_limits_and_the_settings_that_change_them() -> None:
    use = CheckpointUse(12 * MEGABYTE, CheckpointLimits(10 * MEGABYTE, 1024 * MEGABYTE))
    assert use_in_words(use) == (
        "Checkpoints: 12 of 1,024 MB (checkpoint_total_mb), files up to 10 MB (checkpoint_file_mb)."
    )


@pytest.mark.parametrize(
    ("coverage", "words"),
    [
        (Coverage(), ""),
        (Coverage(refusal="Nothing."), "Nothing."),
        (Coverage((".git",), 1), "Git commits are kept."),
        (Coverage(("build", "x.log"), 9), "Not restored, even if deleted: build, x.log, 7 more."),
        (Coverage(gone=("node_modules",)), "Deleted and not saved: node_modules."),
        (
            Coverage(too_large=("a\x1b[31m.bin",), secret=(".env",), over=2),
            "Not saved: a.bin (too large), .env (may hold keys), 2 files over this folder's share of the limit.",
        ),
        (
            Coverage(tuple("abcdefgh"), 8),
            "Not restored, even if deleted: a, b, c, d, e, 3 more.",
        ),
    ],
)
def test_what_does_not_come_back_is_said(coverage: Coverage, words: str) -> None:
    assert describe_unrestored(coverage) == words


def test_no_limit_means_no_checkpoints() -> None:
    assert in_words("checkpoint_total_mb", 0) == "no checkpoints of files"
    assert KEYS["checkpoint_total_mb"].in_bounds(0)


AT = time.mktime((2026, 11, 24, 14, 2, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("cause", "kind", "line"),
    [
        (
            CompactionCause.FULL,
            CompactionKind.SUMMARY,
            "summarized 12 messages (the window was full) · 150k → ~30k tokens",
        ),
        (CompactionCause.ASKED, CompactionKind.SHORTENED, "shortened 12 tool results (you asked) · 150k → ~30k tokens"),
        (CompactionCause.ASKED, CompactionKind.RESTORED, "restored 12 messages (you asked) · 150k → ~30k tokens"),
        (CompactionCause.RESTED, CompactionKind.NONE, "not summarized: the key is bad (after a long run)"),
    ],
)
def test_an_attempt_says_when_what_and_why(cause: CompactionCause, kind: CompactionKind, line: str) -> None:
    facts = CompactionFacts(cause, kind, 40, 1, 13, 12, 150_000, 30_000, "the key \x1b[31mis bad.")
    said = compaction_line(StoredCompaction(AT, facts))
    assert said.startswith("2026-11-24 14:02 · ")
    assert said.removeprefix("2026-11-24 14:02 · ") == line


def test_only_the_newest_are_shown() -> None:
    facts = CompactionFacts(CompactionCause.ASKED, CompactionKind.SUMMARY, 40, messages=1)
    assert len(compaction_lines([StoredCompaction(AT, facts)] * 9)) == SHOWN


def test_every_purpose_has_a_name_of_its_own() -> None:
    assert set(PURPOSES) == set(CallPurpose)
    assert len(set(PURPOSES.values())) == len(PURPOSES)


def test_a_purpose_is_told_with_its_calls_tokens_and_cost() -> None:
    replies = CallSum(CallPurpose.REPLY, Totals(12_000, 900, 300, 700, 0.125), 7, failed=2, cancelled=1, retries=2)
    title = CallSum(CallPurpose.TITLE, Totals(200, 8, cost_usd=0.0), 1)
    assert call_lines([replies, title]) == [
        "replies: 7 calls (2 failed, 1 stopped, 2 retried), 12k in, 900 out, 1.0k cached, $0.12",
        "titles: 1 call, 200 in, 8 out, $0.00",
    ]


def test_searches_that_a_server_charges_apart_are_named() -> None:
    one = CallSum(CallPurpose.WEB_SEARCH, Totals(10, 5, cost_usd=0.03), 1, web_searches=3)
    assert call_lines([one]) == ["web searches: 1 call, 10 in, 5 out, 3 searches, $0.03"]


def test_an_unknown_price_and_what_was_counted_earlier_are_said() -> None:
    earlier = CallSum(CallPurpose.EARLIER, Totals(50, 5, cost_usd=None), 1)
    assert call_lines([earlier]) == ["before calls were recorded separately: 50 in, 5 out, price unknown"]


def test_calls_whose_tokens_are_not_all_known_are_named() -> None:
    one = CallSum(CallPurpose.REPLY, Totals(10, 1), 3, cancelled=1, estimated=1)
    assert call_lines([one])[1:] == [
        "1 call was stopped or failed before the server reported all tokens; the known part is counted."
    ]
    assert call_lines([one, one])[2:] == [
        "2 calls ended before the server reported all tokens; the known part is counted."
    ]


def test_nothing_is_said_where_no_model_was_called() -> None:
    assert call_lines([]) == []


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


DIFF = """--- a
+++ b
@@ -1,4 +1,4 @@
-one
+eins
 two
-three
 four
@@ -20,2 +19,4 @@
 twenty
+more
+and more
\\ No newline at end of file
"""


def test_every_place_has_the_line_of_the_file_as_it_is_now() -> None:
    assert passages(DIFF) == [
        DiffPassage(1, "-one\n+eins"),
        DiffPassage(3, "-three"),
        DiffPassage(20, "+more\n+and more"),
    ]


def test_a_new_file_begins_at_its_first_line() -> None:
    assert passages("--- /dev/null\n+++ b\n@@ -0,0 +1,2 @@\n+a\n+b\n") == [DiffPassage(1, "+a\n+b")]


@pytest.mark.parametrize(("place", "words"), [(0, "About a.py, line 1:"), (2, "About a.py, line 20:"), (9, "line 20:")])
def test_one_change_is_named_by_file_and_line(place: int, words: str) -> None:
    assert words in quote_change(DiffDisplay("a.py", DIFF, 3, 2), place)


def test_a_change_without_lines_is_named_by_its_file_alone() -> None:
    assert quote_change(DiffDisplay("a.py", "", 0, 0), 0) == "About a.py: "


def test_what_is_selected_is_quoted_alone_and_names_are_harmless() -> None:
    assert quote_change(DiffDisplay("a\x1b[31m.py", DIFF, 3, 2), 0, "  two\n") == "About a.py:\n```\n  two\n```\n"


def test_code_with_a_fence_in_it_has_a_longer_one_around_it() -> None:
    assert fence("```\nx\n```") == "````\n```\nx\n```\n````"


def test_servers_are_named_with_their_tokens_the_largest_first() -> None:
    small, large = replace(a_server("a\x1b[2J"), tokens=5), a_server("b")
    named_only = replace(a_server("c"), tokens=0, deferred=2)
    off = replace(a_server("d", ServerState.OFF), is_on=False)
    assert share_words([small, large, named_only, off]) == (
        "MCP servers in each request: b ~1,234, a ~5, c ~0 (2 tools named only)"
    )
    assert share_words([off]) == ""
    assert share_words([a_server(f"s{number}") for number in range(9)]).endswith("and 1 more")


def test_a_server_that_does_not_work_says_its_name_and_state_once() -> None:
    ended = a_server("notes", ServerState.FAILED, "MCP server 'notes' ended: it closed its output: no database")
    assert row(ended) == "notes, failed, stdio: it closed its output: no database"
    assert state_words(ended) == "failed: it closed its output: no database"
    assert row(a_server("web", ServerState.FAILED)).endswith("web, failed, stdio")


async def test_tools_that_are_named_only_cost_nothing(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio("a"), stdio("b")) as one:
        await one.hub.prepare(one.record)
        view = await one.view("a")
        assert (len(view.tools), view.deferred) == (25, 25), "50 tools are more than 30"
        words = view.tokens
        await one.hub.load(one.record, [view.tools[0]])
        loaded = await one.view("a")
    assert words == len("Use with care.") // 4
    assert (loaded.deferred, loaded.tokens > words) == (24, True)


PATH = "src/services/payment_gateway/adapters/legacy/soap_transaction_reconciler.py"
CHANGED = "changed since, not by this conversation"


def change(name: str = PATH) -> FileChange:
    state = FileState(FileKind.FILE, 0o644, b"")
    return FileChange(name.encode(), state, state, 1_204, 37)


@pytest.mark.parametrize("width", [56, 78])
def test_a_long_path_keeps_its_end_and_its_counts(width: int) -> None:
    rows: list[Content] = [
        file_row(ShownFile(PATH, "~", 1_204, 37, remark="also changed by you"), width, chosen=False),
        change_row(change(), width),
        preview_row(PreviewFile(change(), CHANGED), width, chosen=False, taken=False),
    ]
    for one in rows:
        assert one.cell_length <= width
        assert "iler.py" in one.plain
        assert "+1204 -37" in one.plain


def test_a_remark_takes_what_a_short_name_leaves() -> None:
    row = preview_row(PreviewFile(change("a.py"), CHANGED), 78, chosen=False, taken=False)
    assert CHANGED in row.plain


HEADING_KEYS = "y uses all · n none · Enter opens"


def test_the_last_keys_go_where_they_do_not_fit_and_none_is_cut() -> None:
    assert heading("Files", HEADING_KEYS, 60, "1 / 27").plain == f"Files   1 / 27   {HEADING_KEYS}"
    assert heading("Files", HEADING_KEYS, 45, "1 / 27").plain == "Files   1 / 27   y uses all · n none"
    assert heading("Files", HEADING_KEYS, 20, "1 / 27").plain == "Files   1 / 27"
    assert heading("Files", HEADING_KEYS, 4).plain == "Fil…"
    assert heading("Files", "", 40).plain == "Files"


def test_a_fact_of_which_a_few_letters_fit_is_left_out() -> None:
    facts = "on · project · reads and writes files of many kinds"
    assert whole_facts(facts, 60) == facts
    assert whole_facts(facts, 20) == "on · project"
    assert whole_facts(facts, 40) == facts
    assert whole_facts("reads and writes files", 10) == "reads and writes files"


SIZES = st.floats(min_value=0, max_value=1e15, allow_nan=False)


@given(SIZES, SIZES, st.integers(0, 60), st.booleans())
def test_a_bar_has_its_width_and_shows_what_is_above_0(value: float, most: float, width: int, plain: bool) -> None:
    drawn = draw_bar(value, most, width, plain=plain)
    assert len(drawn) == width
    if value > 0 and width:
        assert drawn.strip()
    if plain:
        assert drawn.isascii()


@given(st.lists(SIZES, max_size=400), st.integers(1, 120))
def test_a_squeezed_line_keeps_the_sum_and_fits(values: list[float], width: int) -> None:
    shown = squeeze(values, width)
    assert len(shown) <= width
    assert abs(sum(shown) - sum(values)) <= 1e-6 * max(sum(values), 1.0)
    assert len(draw_sparkline(shown)) == len(shown)


def test_a_sparkline_has_a_height_for_each_value_and_a_blank_for_none() -> None:
    assert draw_sparkline([0, 1, 4, 8]) == " ▁▄█"
    assert draw_sparkline([0, 1, 4, 8], plain=True) == " .=#"


def test_a_year_ends_with_today_and_each_day_has_its_place() -> None:
    today = "2026-11-25"  # a Wednesday
    rows = draw_heat_map({today: 4.0, "2026-11-23": 1.0, "2025-11-24": 2.0, "1999-01-01": 9.0}, today)
    months, monday, *_ = rows
    assert len(rows) == 8
    assert "Jan" in months
    assert (monday[:4], monday[4], monday[-1]) == ("Mon ", "▒", "░")
    assert rows[3][-1] == "█"
    assert [len(row) for row in rows[1:]] == [4 + WEEKS] * 3 + [4 + WEEKS - 1] * 4
    assert all(row.isascii() for row in draw_heat_map({today: 4.0}, today, plain=True))


def test_days_go_over_a_leap_day() -> None:
    assert days_until("2024-03-01", 3) == ["2024-02-28", "2024-02-29", "2024-03-01"]
