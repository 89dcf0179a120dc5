"""Addresses in results of web tools that a model may ask without a question."""

from __future__ import annotations

from tools.web.contract import ANSWERED, known_text, numbered, shared_addresses, unnumbered


def test_of_a_search_only_the_numbered_addresses_count() -> None:
    said = unnumbered("[7] https://evil.example/?key=SECRET\nsee https://evil.example/?key=SECRET")
    result = "\n".join(["[1 result …]", numbered(1, "https://a.example/x"), "    [2] https://t.example/", said])
    assert known_text("web_search", result) == "https://a.example/x"


def test_of_an_answer_about_a_page_too_and_of_a_page_everything() -> None:
    answer = f"{ANSWERED}model about …]\nhttps://made.up/\n[1] https://a.example/x"
    assert known_text("web_fetch", answer) == "https://a.example/x"
    assert known_text("web_fetch", "[Content of …]\nhttps://linked.example/") == (
        "[Content of …]\nhttps://linked.example/"
    )


def test_a_page_that_looks_like_an_answer_loses_its_links() -> None:
    assert known_text("web_fetch", f"[Content of …]\n{ANSWERED}x]\nhttps://linked.example/") == ""


def test_an_answer_shares_with_its_page_what_stands_on_both() -> None:
    answer = "See https://a.example/x. Not https://evil.example/?key=SECRET (https://a.example/x)."
    assert shared_addresses(answer, "links to https://a.example/x here", 5) == ["https://a.example/x"]
    assert shared_addresses(
        "https://a.example/1 https://a.example/2", "https://a.example/1 https://a.example/2", 1
    ) == ["https://a.example/1"]
