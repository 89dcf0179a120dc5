"""Styles of rows name no call: Textual keeps every style it wrote, so each turn would leave its own."""

from __future__ import annotations

from textual.strip import Strip

from engine.machine.messages import ToolStatus, ToolUseBlock
from tests.support.screens import TranscriptApp, answered, call_record, said, snapshot

CALLS = 40


async def test_forty_calls_are_written_in_the_styles_of_one() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        kept: list[int] = []
        for first in (0, CALLS):
            calls = [ToolUseBlock(f"call-{first + number}", "bash", '{"command":"make"}') for number in range(CALLS)]
            records = [call_record(call.id, "bash", call.input_json, ToolStatus.SUCCESS) for call in calls]
            app.view.show(snapshot([said(1, "go"), answered(2, *calls)], records))
            app.view.action_view("top")
            await pilot.pause()
            for slot in range(2):
                written(app, slot)
            kept.append(Strip.render_ansi.cache_info().currsize)
        assert kept[0] == kept[1], "other calls in the same places were written in other styles"


async def test_a_click_beside_the_words_of_a_line_does_nothing() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)):
        call = ToolUseBlock('it\'s "one"', "bash", '{"command":"make"}')
        records = [call_record(call.id, "bash", call.input_json, ToolStatus.SUCCESS)]
        app.view.show(snapshot([said(1, "go"), answered(2, call)], records))
        row = next(y for y in range(14) if app.view.canvas.action_at(4, y))
        assert app.view.canvas.action_at(4, row) == f"fold({'call:' + call.id!r})"
        assert [app.view.canvas.action_at(x, y) for x, y in ((4, 0), (59, row), (4, 13), (4, 99))] == [""] * 4


def written(app: TranscriptApp, slot: int) -> None:
    """Write every row of a message as it goes to the terminal."""
    app.view.render_lines(app.view.size.region)
    painter = app.view._rows._painter
    drawn = app.view.canvas.stack.draw(slot)
    assert painter is not None and drawn is not None
    for part in drawn.parts:
        for line in part.lines:
            painter.strip(line).render(app.console)
