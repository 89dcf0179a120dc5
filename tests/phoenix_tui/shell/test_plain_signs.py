"""Drawing every part of the screen with ASCII signs on terminals without others."""

from __future__ import annotations

import pytest

from engine.machine.states import AwaitingLlm, Requesting, Run
from engine.updates import StateChanged, TextArrived
from phoenix_tui.terminal.ascii_filter import PLAIN
from phoenix_tui.terminal.state import is_plain
from phoenix_tui.text.labels import TURNING
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeEngine


async def test_transcript_list_title_and_status_are_ascii(open_shell: OpenShell, engine: FakeEngine) -> None:
    talk = engine.seed("Relay", messages=4)
    engine.seed("Other", messages=2)
    async with open_shell((120, 40), plain=True) as shell:
        await shell.open(talk)
        talk.play(StateChanged(AwaitingLlm(1, Run("r", 5), Requesting()), engine.now))
        talk.play(TextArrived("- one\n- two\n\n```\ncode\n```\n"))
        await shell.until(lambda: "code" in shell.text)
        assert "| " in shell.text
        assert "* " in shell.text
        assert [sign for sign in shell.text if ord(sign) > 127] == []


def test_a_sign_is_one_cell_as_the_one_it_stands_for() -> None:
    assert all(len(str(plain)) == 1 and str(plain).isascii() for plain in PLAIN.values())
    assert {TURNING.translate(PLAIN)} == {"****"}


@pytest.mark.parametrize(
    ("environment", "plain"),
    [
        ({}, False),
        ({"LANG": "en_GB.UTF-8"}, False),
        ({"LANG": "C.utf8"}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "de_DE.ISO-8859-1@euro"}, True),
        ({"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.ISO-8859-1"}, False),
        ({"LC_ALL": "", "LC_CTYPE": "ja_JP.eucJP", "LANG": "ja_JP.UTF-8"}, True),
    ],
)
def test_the_locale_says_what_the_terminal_knows(environment: dict[str, str], plain: bool) -> None:
    assert is_plain(environment) is plain
