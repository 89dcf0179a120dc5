"""Links show where they lead, and open nothing but addresses for a person (FAULTS 58)."""

from __future__ import annotations

import pytest

from phoenix_tui.markdown.inline import link_action
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
