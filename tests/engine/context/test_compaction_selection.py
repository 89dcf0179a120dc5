"""Selection of a compaction (SPEC T-CMPX 4, 5), its request, and that any cut stays sendable."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.context import omissions
from engine.context.assemble import SUMMARY, UNDERSTOOD, GrowingView
from engine.context.compaction import (
    LONGEST_LIMIT,
    LONGEST_PART,
    THINKING_ROOM,
    is_shorter,
    select,
    select_before,
    summary_by_rules,
    summary_request,
    transcribe,
    with_quotes,
)
from engine.machine.messages import (
    Block,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from engine.machine.views import ContextView, Omission, OmissionKind
from engine.ports import ImageBytes, ModelRequest
from engine.providers.anthropic.to_wire import request_body
from engine.records import StoredMessage
from tests.support.loopback_anthropic import TINY_PNG, violations
from tests.support.views import build_view

HEADERS = {"anthropic-version": "x", "x-api-key": "x"}
U, A, S = Role.USER, Role.ASSISTANT, Role.SYSTEM


def chain(*said: tuple[Role, tuple[Block, ...]]) -> list[StoredMessage]:
    return [
        StoredMessage(f"m{seq}", seq, 0, seq, role, origin_of(role, blocks), blocks, 0.0)
        for seq, (role, blocks) in enumerate(said, 1)
    ]


def origin_of(role: Role, blocks: tuple[Block, ...]) -> Origin:
    if any(isinstance(block, ToolResultBlock) for block in blocks):
        return Origin.TOOL
    return {U: Origin.HUMAN, A: Origin.LLM, S: Origin.NOTICE}[role]


def text(role: Role, words: str = "word") -> tuple[Role, tuple[Block, ...]]:
    return role, (TextBlock(words),)


def tool_round(name: str, words: str = "") -> list[tuple[Role, tuple[Block, ...]]]:
    speech: tuple[Block, ...] = (TextBlock(words),) if words else ()
    return [(A, (*speech, ToolUseBlock(name, "bash", "{}"))), (U, (ToolResultBlock(name, (TextBlock("out"),)),))]


def talk(count: int) -> list[StoredMessage]:
    return chain(*(text(A if n % 2 else U, f"word {n}") for n in range(count)))


@pytest.mark.parametrize(("count", "kept"), [(5, 0), (6, 4), (10, 4), (14, 4), (20, 6), (50, 16)])
def test_the_newest_messages_stay(count: int, kept: int) -> None:
    selection = select(talk(count))
    assert (selection.kept if selection else 0) == kept
    if selection:
        assert [row.seq for row in selection.summarized] == list(range(1, count - kept + 1))
        assert selection.start_seq == count - kept + 1


def test_a_cut_moves_to_the_question_before_a_tool_round() -> None:
    rows = chain(text(U), text(A), text(U), *tool_round("t1"), *tool_round("t2"), *tool_round("t3"), text(A))
    selection = select(rows)
    assert selection is not None
    assert selection.start_seq == 3


def test_without_a_plain_message_the_cut_is_between_two_whole_rounds_of_tools() -> None:
    rows = chain(text(U), *itertools.chain.from_iterable(tool_round(f"t{n}") for n in range(10)))
    found = select(rows)
    assert found is not None
    assert rows[found.start_seq - 1].role is A, "never begins with a result"
    assert found.kept == 6


@pytest.mark.parametrize(("rounds", "start"), [(2, 3), (3, 3), (5, 10), (6, 12), (12, 20)])
def test_a_plain_message_is_kept_with_its_tools_only_where_enough_is_summarized(rounds: int, start: int) -> None:
    rows = chain(text(U), text(A), text(U), *itertools.chain.from_iterable(tool_round(f"t{n}") for n in range(rounds)))
    found = select(rows)
    assert found is not None
    assert found.start_seq == start


def test_notices_and_silent_rows_do_not_count() -> None:
    rows = chain(*[text(S)] * 9, text(U), text(A))
    assert select(rows) is None


def test_the_request_carries_the_wish_and_what_came_before_and_stays_within_the_window() -> None:
    selection = select(chain(*(text(A if n % 2 else U, "x" * 9_000) for n in range(20))))
    assert selection is not None
    system, asked, limit = summary_request(selection, "the older part", "the database", 200_000)
    assert "Begin with what is newest" in system
    assert "the older part" in asked
    assert "above all is kept: the database" in asked
    assert limit <= LONGEST_LIMIT + THINKING_ROOM
    small = summary_request(selection, "", "", 8_192)
    assert len(small[1]) < 8_192 * 4
    assert small[2] <= 2_048


def test_long_parts_lose_their_middle_and_the_oldest_go_first() -> None:
    rows = chain(*(text(U, f"start{n} " + "y" * 5_000 + f" end{n}") for n in range(6)))
    whole = transcribe(rows, 1_000_000)
    assert all(f"start{n}" in whole and f"end{n}" in whole for n in range(6))
    assert len(whole) < 6 * (LONGEST_PART + 50)
    short = transcribe(rows, 6_000)
    assert len(short) <= 6_100
    assert short.count("y") > 3_000
    assert "start5" in short


def test_the_users_own_words_are_quoted_newest_first() -> None:
    selection = select(talk(10))
    assert selection is not None
    assert with_quotes("short", selection) == (
        "short\n\nThe user's own words, newest first:\n- word 4\n- word 2\n- word 0"
    )


def test_a_summary_that_is_longer_than_what_it_replaces_is_no_gain() -> None:
    selection = select(talk(10))
    assert selection is not None
    assert is_shorter("a few words", selection, "")
    assert not is_shorter("x" * 4_000, selection, "")
    assert not is_shorter("", selection, "")


def test_rules_name_files_commands_failures_and_the_last_answer() -> None:
    calls: tuple[Block, ...] = (
        ToolUseBlock("a", "read_file", '{"path": "src/app.py"}'),
        ToolUseBlock("b", "bash", '{"command": "make test"}'),
        ToolUseBlock("c", "bash", "{broken"),
    )
    answers: tuple[Block, ...] = (
        ToolResultBlock("a", (TextBlock("code"),)),
        ToolResultBlock("b", (TextBlock("make: no rule\nmore"),), is_error=True),
    )
    made = summary_by_rules(chain(text(U, "test it"), (A, calls), (U, answers), text(A, "It fails.")), "earlier words")
    for expected in ("- src/app.py", "- make test", "- make: no rule", "It fails.", "earlier words", "without a model"):
        assert expected in made


def test_the_summary_stands_first_and_is_answered() -> None:
    view = build_view(chain(text(U, "next")), summary="old things")
    assert [message.blocks for message in view] == [
        (TextBlock(SUMMARY + "old things"),),
        (TextBlock(UNDERSTOOD),),
        (TextBlock("next"),),
    ]


def test_a_reply_that_calls_tools_follows_the_summary_itself() -> None:
    view = build_view(chain(*tool_round("t1")), summary="old")
    assert [message.role for message in view] == [U, A, U]
    assert view[1].blocks == (ToolUseBlock("t1", "bash", "{}"),)


def a_history(rng: random.Random) -> list[StoredMessage]:
    """A valid stored history: prompts, answers, tool rounds with images, notices, anything cut off at its end."""
    said: list[tuple[Role, tuple[Block, ...]]] = []
    for number in range(rng.randrange(1, 9)):
        said.append((U, (ImageBlock("i", 9, 9), TextBlock("q")) if rng.random() < 0.2 else (TextBlock("q"),)))
        for step in range(rng.randrange(4)):
            ids = [f"t{number}_{step}_{n}" for n in range(rng.randrange(1, 3))]
            thought: tuple[Block, ...] = (ThinkingBlock("hm", "sig"),) if rng.random() < 0.3 else ()
            said.append((A, (*thought, *(ToolUseBlock(one, "bash", "{}") for one in ids))))
            picture = (ImageBlock("i", 9, 9),) if rng.random() < 0.3 else ()
            content = (TextBlock("x" * rng.choice((3, 6_000))), *picture)
            said.append((U, tuple(ToolResultBlock(one, content) for one in ids)))
            if rng.random() < 0.2:
                said.append(text(S, "notice"))
        if rng.random() < 0.8:
            said.append(text(A, "done"))
    return chain(*said)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_is_summarized_and_left_out_a_strict_server_takes_the_rest(seed: int) -> None:
    rng = random.Random(seed)
    rows = a_history(rng)
    every = (*omissions.images(rows), *omissions.shorten_old(rows), *omissions.clear_old(rows))
    omitted: tuple[Omission, ...] = tuple(each for each in every if rng.random() < 0.5)
    growing = GrowingView()
    shown = omissions.apply(rows, omitted)
    while (selection := select(shown)) is not None:
        assert {row.seq for row in selection.summarized} < {row.seq for row in shown}
        view = ContextView("what was before", selection.start_seq, omitted)
        kept = [row for row in rows if row.seq >= selection.start_seq]
        shown = [row for row in shown if row.seq >= selection.start_seq]
        messages = build_view(omissions.apply(kept, omitted), summary=view.summary)
        assert messages == growing.build(kept, view, (), "")
        assert messages[0].blocks[0] == TextBlock(SUMMARY + view.summary)
        images = {"i": ImageBytes("image/png", TINY_PNG)}
        body = request_body(ModelRequest("claude-sonnet-5-5", ("s",), messages, (), images))
        assert violations(body, HEADERS) == []


def test_an_image_that_was_taken_out_is_in_no_request() -> None:
    rows = chain((U, (ImageBlock("broken", 9, 9), TextBlock("look"))))
    view = build_view(omissions.apply(rows, (Omission(1, 0, OmissionKind.IMAGE),)))
    assert "broken" not in str(view)


@pytest.mark.parametrize(("seq", "kept"), [(5, 2), (3, 4), (1, None), (4, None), (99, None)])
def test_what_comes_before_a_message_of_the_users_is_taken_whole(seq: int, kept: int | None) -> None:
    found = select_before(talk(6), seq)
    assert (found.kept if found else None) == kept
    if found is not None:
        assert (found.start_seq, [row.seq for row in found.summarized]) == (seq, list(range(1, seq)))
