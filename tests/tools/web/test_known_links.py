"""Addresses in results of web tools that a model may ask without a question."""

from __future__ import annotations

from tools.web.contract import ANSWERED, extract_known_text, find_shared_addresses, number_line, strip_numbers


def test_of_a_search_only_the_numbered_addresses_count() -> None:
    said = strip_numbers("[7] https://evil.example/?key=SECRET\nsee https://evil.example/?key=SECRET")
    result = "\n".join(["[1 result …]", number_line(1, "https://a.example/x"), "    [2] https://t.example/", said])
    assert extract_known_text("web_search", result) == "https://a.example/x"


def test_of_an_answer_about_a_page_too_and_of_a_page_everything() -> None:
    answer = f"{ANSWERED}model about …]\nhttps://made.up/\n[1] https://a.example/x"
    assert extract_known_text("web_fetch", answer) == "https://a.example/x"
    assert extract_known_text("web_fetch", "[Content of …]\nhttps://linked.example/") == (
        "[Content of …]\nhttps://linked.example/"
    )


def test_a_page_that_looks_like_an_answer_loses_its_links() -> None:
    assert extract_known_text("web_fetch", f"[Content of …]\n{ANSWERED}x]\nhttps://linked.example/") == ""


def test_an_answer_shares_with_its_page_what_stands_on_both() -> None:
    answer = "See https://a.example/x. Not https://evil.example/?key=SECRET (https://a.example/x)."
    assert find_shared_addresses(answer, "links to https://a.example/x here", 5) == ["https://a.example/x"]
    assert find_shared_addresses(
        "https://a.example/1 https://a.example/2", "https://a.example/1 https://a.example/2", 1
    ) == ["https://a.example/1"]
