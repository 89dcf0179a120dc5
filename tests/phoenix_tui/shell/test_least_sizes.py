"""Terminals of 1x1 and more: below the least size one sentence stands for the screen, and nothing is laid out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from textual import events
from textual.geometry import Size

from engine.machine.states import AwaitingLlm, Requesting, Run
from engine.updates import TextArrived
from phoenix_tui.app import TOO_SMALL
from phoenix_tui.terminal.size import LEAST
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import question
from tests.support.shell import Shell

EVERY: Final = [(columns, rows) for columns in range(1, 22) for rows in range(1, 11)]
EDGE: Final = [*((columns, 7) for columns in (1, 2, 3, 9, 19, 20, 21)), *((24, rows) for rows in (1, 4, 5, 9)), (1, 1)]
"""Sizes below the least and across it, in one direction and the other."""
WORDS: Final = "- one **two** three\n\n| a | b |\n|---|---|\n| `c` | d |\n\n```py\nwide = 'code'\n```\n"


async def through(
    shell: Shell, sizes: Sequence[tuple[int, int]], then: Callable[[int], object] = lambda _: None
) -> None:
    """Give the terminal each size; `then` gets the number of each. Ten come before the loop is at rest."""
    for number, (columns, rows) in enumerate(sizes):
        driver = shell.app._driver
        assert driver is not None
        driver._size = columns, rows
        shell.app.post_message(events.Resize(Size(columns, rows), Size(columns, rows)))
        then(number)
        if len(sizes) <= len(EDGE) or number % 10 == 0:
            await shell.pilot.pause()
        else:
            await asyncio.sleep(0)
            continue
        assert shell.app.size == (max(columns, LEAST[0]), max(rows, LEAST[1]))
        assert shell.app.is_too_small is (columns < LEAST[0] or rows < LEAST[1])
        assert not shell.app.shutdown.crash_note


async def works(shell: Shell) -> None:
    """Type into the composer of a screen that can be read again."""
    await through(shell, [(80, 24)])
    before = shell.composer.text
    await shell.type("still here")
    assert shell.composer.text == f"{before}still here"
    assert len(shell.text.split("\n")) == 24


async def test_a_terminal_at_rest_takes_every_size(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        await through(shell, EVERY)
        await works(shell)


async def test_a_screen_in_mid_stream_takes_every_width(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        conversation = await shell.say("go on")
        conversation.become(AwaitingLlm(1, Run("r", 5), Requesting()))
        await through(shell, EDGE, lambda number: conversation.play(TextArrived(f"{number} {WORDS}")))
        await works(shell)


async def test_a_sheet_takes_every_width(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        await shell.say("a message")
        await shell.pilot.press("f1")
        await shell.until(lambda: shell.top is not shell.screen)
        await through(shell, EDGE)
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.top is shell.screen)
        await works(shell)


async def test_a_question_takes_every_width_and_no_yes_where_it_cannot_be_read(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        conversation = await shell.say("go on")
        await through(shell, [(3, 3)])
        conversation.ask(question())
        shell.question.gate.since = 0.0
        shell.question.press("y")
        shell.question.press("y")
        await shell.pilot.pause()
        assert conversation.answers == []
        await through(shell, EDGE)
        await through(shell, [(80, 24)])
        shell.question.press("y")
        await shell.until(lambda: conversation.answers)


async def test_a_click_on_a_screen_that_cannot_be_seen_is_at_nothing(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        await through(shell, [(3, 3)])
        place = shell.composer.region.offset
        for kind in (events.MouseDown, events.MouseUp):
            shell.app.post_message(kind(None, place.x, place.y, 0, 0, 1, False, False, False, place.x, place.y))
        await shell.pilot.pause()
        await works(shell)


async def test_the_sentence_fits_its_terminal_and_changes_with_it(open_shell: OpenShell) -> None:
    async with open_shell(paints=True) as shell:
        driver = shell.app._driver
        assert driver is not None
        written: list[str] = []
        driver.write = lambda data: written.append(data)  # type: ignore[method-assign]  # the headless one writes nothing
        await through(shell, [(3, 3), (9, 2), (1, 1)])
        said = [text.removeprefix("\x1b[2J\x1b[H") for text in written if text.startswith("\x1b[2J")]
        assert said == [TOO_SMALL[:9], TOO_SMALL[:18], TOO_SMALL[:1]]
