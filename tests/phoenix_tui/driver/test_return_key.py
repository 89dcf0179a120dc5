"""Ctrl+] twice takes the terminal back; once is the program's."""

from __future__ import annotations

import pytest

from phoenix_tui.keys.return_key import TWICE_WITHIN, ReturnKey
from tests.support.clocks import SteppedClock

PRESS = b"\x1d"


@pytest.mark.parametrize("press", [PRESS, b"\x1b[93;5u", b"\x1b[27;5;93~"])
@pytest.mark.parametrize("apart", [True, False])
def test_two_presses_in_a_row_return_and_are_no_keys_of_the_program(press: bytes, apart: bool) -> None:
    key = ReturnKey(SteppedClock())
    if apart:
        assert key.feed(b"ab" + press) == (b"ab", False)
        assert key.feed(press + b"later") == (b"", True)
    else:
        assert key.feed(b"ab" + press + press + b"later") == (b"ab", True)


def test_one_press_is_the_programs_with_the_next_key_or_after_a_while() -> None:
    clock = SteppedClock()
    key = ReturnKey(clock)
    assert key.feed(PRESS) == (b"", False)
    assert key.feed(b"x" + PRESS) == (PRESS + b"x", False)
    assert (key.holds, key.take_late()) == (True, b"")
    clock.seconds += TWICE_WITHIN
    assert (key.take_late(), key.holds) == (PRESS, False)
    assert key.feed(PRESS) == (b"", False)
    clock.seconds += TWICE_WITHIN + 0.1
    assert key.feed(PRESS) == (PRESS, False)
    assert key.feed(PRESS) == (b"", True)


def test_presses_with_a_key_between_do_not_return() -> None:
    key = ReturnKey(SteppedClock())
    assert key.feed(PRESS + b"x" + PRESS + b"y") == (PRESS + b"x" + PRESS + b"y", False)
    assert key.feed(PRESS + b"x" + PRESS + PRESS) == (PRESS + b"x", True)
