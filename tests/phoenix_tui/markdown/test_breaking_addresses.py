"""Long words are broken at the parts of an address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.markdown.wrap import breaks

ADDRESS = "https://docs.example.com/reference/payments/webhooks?section=retries&language=en-GB"


def rows(text: str, width: int, *, hard: bool = False) -> list[str]:
    return [text[row.start : row.end] for row in breaks(text, width, hard=hard)]


@pytest.mark.parametrize("before", ["See", "Siehe für"])
def test_an_address_stays_whole_where_it_fits_and_else_ends_at_its_parts(before: str) -> None:
    assert rows(f"{before} {ADDRESS}", 90) == [before, ADDRESS] or len(f"{before} {ADDRESS}") <= 90
    assert rows(f"{before} {ADDRESS} now", 30) == [
        before,
        "https://docs.example.com/",
        "reference/payments/webhooks",
        "?section=retries",
        "&language=en-GB now",
    ]


def test_code_is_broken_where_its_row_ends() -> None:
    assert rows(ADDRESS, 30, hard=True)[0] == ADDRESS[:30]


@given(st.text("a/?&# é漢", max_size=80), st.integers(2, 20))
def test_no_character_but_blanks_is_lost(text: str, width: int) -> None:
    assert "".join(rows(text, width)).replace(" ", "") == text.replace(" ", "")
