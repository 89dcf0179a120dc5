"""/copy and /copy 2, copy on select, and the key of the focus view."""

from __future__ import annotations

import base64

import pytest

from engine.machine.messages import Role
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.widgets.transcript.view import FOCUS_VIEW
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeEngine, FakeSettings
from tests.support.shell import Shell


async def talked(shell: Shell, engine: FakeEngine) -> list[str]:
    """A conversation with three answers is in view; the list gets what is copied."""
    conversation = engine.seed("relay")
    for text in ("first", "second answer", "third"):
        conversation.add("go")
        conversation.add(text, Role.ASSISTANT)
    await shell.open(conversation)
    await shell.until(lambda: "third" in shell.text)
    copied: list[str] = []
    shell.ctx.clipboard._write_terminal = lambda text: copied.append(decode(text))
    return copied


def decode(sequence: str) -> str:
    return base64.b64decode(sequence.split(";")[-1].split("\x07")[0].split("\x1b")[0]).decode()


@pytest.mark.parametrize(
    ("argument", "text"), [("", "third"), (" 1", "third"), (" 2", "second answer"), (" 3", "first")]
)
async def test_an_answer_is_copied_by_its_number_from_the_end(
    shell: Shell, engine: FakeEngine, argument: str, text: str
) -> None:
    copied = await talked(shell, engine)
    await shell.enter(f"/copy{argument}", until=lambda: copied)
    assert copied == [text]


@pytest.mark.parametrize(
    ("argument", "words"),
    [("4", "There are no 4 answers to copy yet."), ("0", "Type /copy for"), ("two", "Type /copy for")],
)
async def test_a_number_without_an_answer_copies_nothing(
    shell: Shell, engine: FakeEngine, argument: str, words: str
) -> None:
    copied = await talked(shell, engine)
    await shell.enter(f"/copy {argument}", until=lambda: any(words in toast for toast in shell.toasts))
    assert copied == []


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_selection_with_the_mouse_is_copied_at_once_where_that_is_wanted(
    open_shell: OpenShell, engine: FakeEngine, wanted: bool
) -> None:
    async with open_shell(copy_on_select=wanted) as shell:
        copied = await talked(shell, engine)
        view = shell.transcript
        row = next(y for y, text in enumerate(shell.text.split("\n")) if "second answer" in text)
        top = view.region.y
        await shell.pilot.mouse_down(view, offset=(2, row - top))
        await shell.pilot.hover(view, offset=(8, row - top))
        await shell.pilot.mouse_up(view, offset=(8, row - top))
        await shell.until(lambda: shell.screen.get_selected_text())
        if wanted:
            await shell.until(lambda: copied)
            assert copied == ["second"]
        await shell.enter("/copy", until=lambda: copied and copied[-1] == "third")
        assert len(copied) == 1 + wanted


async def test_the_key_of_the_focus_view_switches_it_and_keeps_the_choice(shell: Shell, engine: FakeEngine) -> None:
    await talked(shell, engine)
    settings = shell.active.services.settings
    assert isinstance(settings, FakeSettings)
    settings.rows.append(Setting("focus_view", "false", "default", "true or false", "focus", ("true", "false"), True))
    await shell.press("alt+o", until=lambda: is_focused(shell))
    await shell.press("alt+o", until=lambda: not is_focused(shell))
    assert shell.settings == [("focus_view", "true"), ("focus_view", "false")]


def is_focused(shell: Shell) -> bool:
    """The app and its transcript are in the focus view."""
    return shell.app.has_class(FOCUS_VIEW) and shell.transcript.canvas.model.is_focused


async def test_the_focus_view_is_kept_for_the_next_start(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(focus_view=True) as shell:
        await talked(shell, engine)
        assert shell.transcript.canvas.model.is_focused
