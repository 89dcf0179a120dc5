"""Links and addresses in Markdown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.markdown.layout import link_action
from phoenix_tui.markdown.lines import breaks
from tests.support.whole_markdown import markdown_lines


def shown(source: str) -> str:
    return "\n".join("".join(span.text for span in line.spans) for line in markdown_lines(source, 100)).strip()


def actions(source: str) -> set[str]:
    return {span.action for line in markdown_lines(source, 100) for span in line.spans if span.action}


def test_a_link_whose_text_names_another_address_shows_its_real_target() -> None:
    source = "[https://good.example](https://evil.example/x)"
    assert shown(source) == "https://good.example (https://evil.example/x)"
    assert actions(source) == {link_action("https://evil.example/x")}


def test_a_link_whose_text_is_its_target_says_it_once() -> None:
    assert shown("<https://good.example/x> <me@good.example>") == "https://good.example/x me@good.example"


@pytest.mark.parametrize(
    ("target", "opens"),
    [
        ("https://good.example/x", True),
        ("http://good.example", True),
        ("mailto:me@good.example", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("data:text/html,x", False),
        ("vscode://open", False),
        ("relative/path", False),
        ("https://[broken", False),
        ("https://good.example/\x1b]52;c;x\x07", False),
        ("https://good.example/\u202e", False),
        ("", False),
    ],
)
def test_only_addresses_of_the_web_and_of_mail_can_be_opened(target: str, opens: bool) -> None:
    assert bool(link_action(target)) is opens


@pytest.mark.parametrize("text", ["');quit('", '");quit("', "\\'", "')", "{x}"])
def test_an_address_stays_one_argument_of_its_action(text: str) -> None:
    target = f"https://good.example/{text}"
    assert link_action(target) == f"open_link({target!r})"


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
