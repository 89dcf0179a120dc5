"""A yes at the end of the row of its call, and a no that is no failure."""

from __future__ import annotations

import pytest

from engine.machine.messages import Origin, Role, TextBlock, ToolStatus, ToolUseBlock
from engine.updates import MessageSaved
from phoenix_tui.widgets.blocks.rows import ToolView, read_grant
from phoenix_tui.widgets.blocks.tool_row import tool_block
from phoenix_tui.widgets.transcript.model import TranscriptModel, shows_nothing
from tests.support.screens import TranscriptApp, answered, call_record, message, said, snapshot

LONG = f"python -m pytest {'tests/one/directory/' * 4}"
CALLS = (
    ToolUseBlock("t1", "bash", '{"command": "ls -a"}'),
    ToolUseBlock("t2", "bash", f'{{"command": "{LONG}"}}'),
    ToolUseBlock("t3", "patch", '{"path": "docs/a-long-folder/README.rst"}'),
)
RECORDS = [call_record(one.id, one.name, one.input_json, ToolStatus.SUCCESS) for one in CALLS]


def noted(seq: int, text: str) -> MessageSaved:
    return MessageSaved(message(seq, Role.SYSTEM, Origin.NOTICE, TextBlock(text)))


def shown(notes: list[str]) -> tuple[list[str], list[bool]]:
    """The words at the ends of the three calls, and which of the rows behind them show nothing of their own."""
    model = TranscriptModel()
    model.show(snapshot([said(1, "go"), answered(2, *CALLS)], RECORDS))
    for seq, text in enumerate(notes, 3):
        model.save(noted(seq, text).message)
    views = [model.calls.view(one) for one in CALLS]
    return [view.allowed for view in views], [shows_nothing(model.messages[seq]) for seq in range(3, 3 + len(notes))]


def test_a_yes_goes_to_the_call_that_it_names() -> None:
    notes = [
        f"bash {LONG[:59]}…: allowed once",
        "patch docs/a-lo…/README.rst: allowed for this conversation: patch(/w/docs/a-long-folder/README.rst)",
        "bash ls -a: allowed by mode auto",
    ]
    assert shown(notes) == (["allowed by mode auto", "allowed once", "allowed here"], [True, True, True])


@pytest.mark.parametrize("text", ["bash make: allowed once", "Mode ask", "bash ls -a: allowed", "x: allowed by y: z"])
def test_any_other_row_stays(text: str) -> None:
    assert shown([text]) == (["", "", ""], [False])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bash: always allowed in this project: bash(make*)", "allowed in this project"),
        ("bash: always allowed everywhere: bash(make: x)", "allowed everywhere"),
        ("mcp a: b: allowed once", "allowed once"),
        ("bash: allowed for this conversation", None),
    ],
)
def test_the_words_of_a_yes_are_short(text: str, words: str | None) -> None:
    grant = read_grant(text)
    assert (grant.words if grant is not None else None) == words


async def test_the_answer_has_no_row_of_its_own() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.view.show(snapshot([said(1, "go"), answered(2, CALLS[0])], RECORDS[:1]))
        app.view.apply(noted(3, "bash ls -a: allowed once"))
        app.view.apply(MessageSaved(answered(4, "Done.")))
        await pilot.pause()
        rows = [row for row in app.shown() if row.strip()]
        assert [row.split() for row in rows[1:]] == [
            ["✓", "bash", "ls", "-a", "allowed", "once", "·", "0.4s"],
            ["Done."],
        ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("User denied permission to run bash.", "Denied by you"),
        ("User denied permission to run bash: use a branch", "Denied by you: use a branch"),
    ],
)
def test_a_denied_call_is_no_failure(text: str, words: str) -> None:
    lines = tool_block(ToolView("t1", "bash", "ls", ToolStatus.ERROR, text=text), 80, is_open=False).lines
    first, second = ("".join(span.text for span in line.spans) for line in lines)
    assert first.strip() == "⊘ bash  ls"
    assert second.strip() == f"│ {words}"
