"""Growing Markdown, however the text is cut; code, links and extremes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phoenix_tui.markdown import stream as stream_module
from phoenix_tui.markdown.code import CodeBlock
from phoenix_tui.markdown.layout import DECIDING, link_action
from phoenix_tui.markdown.lines import StyledLine, TextTone, breaks, cells
from phoenix_tui.markdown.stream import MarkdownStream
from tests.support.whole_markdown import markdown_lines

SAMPLE = """# Retry

The second attempt **reuses** the *closed* socket, so `read()` waits for ever and ever and ever, which is long.
It ends ~~never~~ late.

1. first item that is long enough to be wrapped at forty cells or so
2. second
   - nested one
   - nested two
     and more
1. third

   with a second paragraph

| name | size | note |
|------|-----:|------|
| pool | 12 | the `hot` one |
| 漢字の名前 | 3.5 | wide |

> quoted text that goes on and on until it has to be wrapped somewhere
> - and a list

```python
def fresh(self) -> int:
\treturn self._sock  # a comment

    return 1
```

```
unknown
```
---
See [the docs](https://example.org/a) or https://example.com/x?y=1, not [this](javascript:alert(1)).

~~~~rust
let x = "never closed";
"""


def streamed(parts: list[str], width: int = 42) -> list[StyledLine]:
    stream = MarkdownStream(width)
    for part in parts:
        stream.feed(part)
    stream.finish()
    while stream.colour(7) is not None:
        pass
    return stream.lines


def pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@pytest.mark.parametrize("tokens", [1, 4, 40, 400])
@pytest.mark.parametrize("width", [12, 42, 200])
def test_chunks_of_any_size_give_the_lines_of_the_whole(tokens: int, width: int) -> None:
    assert streamed(pieces(SAMPLE, tokens * 4), width) == markdown_lines(SAMPLE, width)


def test_single_characters_give_the_lines_of_the_whole() -> None:
    assert streamed(list(SAMPLE)) == markdown_lines(SAMPLE, 42)


FRAGMENTS = st.sampled_from([
    "a", "word ", "漢字", "é", "👩\u200d💻", "\n", "\n\n", "- ", "* ", "1. ", "2) ", "  ", "    ",
    "> ", "# ", "`", "```", "```py\n", "~~~", "|", "a | b\n", "---|---\n", "---", "===", "**", "*", "_",
    "[x](http://y.z)", "![i](u)", "\t", "<b>", "&amp;", "\\", "x = 1\n",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS, max_size=30), st.integers(1, 7), st.integers(10, 60))
@example(["- ", "a", "\n", "-", "a"], 1, 42)
@example(["```", "a | b\n", "---|---\n"], 1, 10)
@example(["  ", "```py\n", "\t", "a"], 1, 10)
@example(["- ", "a", "\n", "- ", "a | b\n", "---|---\n"], 1, 42)
def test_any_text_in_any_pieces_gives_the_lines_of_the_whole(fragments: list[str], size: int, width: int) -> None:
    text = "".join(fragments)
    assert streamed(pieces(text, size), width) == markdown_lines(text, width)


@settings(max_examples=150, deadline=None)
@given(st.lists(FRAGMENTS, max_size=25), st.integers(20, 60))
@example(["- ", "![i](u)", "aaa", "1. ", "1. ", "\t", "word ", "漢字"], 20)
def test_no_line_is_wider_than_the_column(fragments: list[str], width: int) -> None:
    # Gutters of deep nesting may leave less than the smallest text column.
    if "".join(fragments).count(">") + "".join(fragments).count("-") < 3:
        assert all(cells(line.text) <= width for line in markdown_lines("".join(fragments), width))


PARTS = st.sampled_from([
    "words",
    "```python\nx = 1\n\n\ty\n```",
    "~~~\nplain\n~~~",
    "- item\n\n  ```sh\n  ls\n  ```",
    "    indented\n    code",
    "> ```\n> quoted\n> ```",
    "```\n```",
])


def codes(pieces: list[str], width: int) -> list[CodeBlock]:
    stream = MarkdownStream(width)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return stream.codes


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS, max_size=5), st.integers(1, 40), st.integers(20, 100))
def test_code_is_found_the_same_however_the_text_arrives(parts: list[str], size: int, width: int) -> None:
    text = "\n\n".join(parts)
    whole = codes([text], width)
    assert codes([text[start : start + size] for start in range(0, len(text), size)], width) == whole
    stream = MarkdownStream(width)
    stream.feed(text)
    stream.finish()
    for code in whole:
        assert 0 <= code.first < code.after <= len(stream.lines)
        shown = "".join(line.text[line.margin :].rstrip() for line in stream.lines[code.first : code.after])
        assert shown.replace(" ", "") == code.text.replace("\t", "").replace("\n", "").replace(" ", "")


def test_tabs_and_languages_are_kept_as_they_were_written() -> None:
    assert codes(["```make\nall:\n\techo\n```"], 40) == [CodeBlock(0, 2, "all:\n\techo", "make")]


def test_code_that_is_still_being_written_is_no_piece_yet() -> None:
    stream = MarkdownStream(40)
    stream.feed("```py\nx = 1\n")
    assert stream.codes == []


def test_getting_ready_for_markdown_loads_no_language() -> None:
    script = "import sys; from phoenix_tui.markdown.stream import warm; warm(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded >= {"markdown_it"}
    assert "pygments" not in loaded


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


HEAD = "| name | count |\n|---|---:|\n"


def texts(stream: MarkdownStream) -> list[str]:
    return [line.text.rstrip() for line in stream.lines]


def fed(*pieces: str, width: int = 60) -> MarkdownStream:
    stream = MarkdownStream(width)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return stream


class Counting:
    """The parser, and how many characters it was given."""

    def __init__(self) -> None:
        self.parser = stream_module._parser
        self.characters: list[int] = []

    def parse(self, text: str) -> object:
        self.characters.append(len(text))
        return self.parser.parse(text)


def test_the_rows_of_a_long_table_are_parsed_once_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    monkeypatch.setattr(stream_module, "_parser", counting)
    stream = MarkdownStream(60)
    stream.feed(HEAD)
    for number in range(5_000):
        stream.feed(f"| row {number} | {number} |\n")
    assert max(counting.characters[2 * DECIDING :]) < 200
    assert stream.settled == 5_002
    assert texts(stream)[-1].split() == ["row", "4999", "4999"]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(DECIDING - 3, DECIDING + 30),
    size=st.integers(150, 2_000),
    words=st.lists(
        st.sampled_from(["a", "some words", "漢字", "a much longer cell than that", "12", "`x`"]), min_size=1
    ),
    after=st.sampled_from([
        "",
        "\n",
        "\nAfter.",
        "\n\n| a | b |\n",
        "> quoted\n\nAfter",
        "```\ncode\n```\n",
        "- one\n",
    ]),
    before=st.sampled_from(["", "Before.\n\n", "- item\n\n", "Before.\n"]),
    width=st.integers(12, 70),
)
def test_a_long_table_in_any_pieces_gives_the_lines_of_the_whole(
    rows: int, size: int, words: list[str], after: str, before: str, width: int
) -> None:
    body = "".join(f"| {words[number % len(words)]} | {number} |\n" for number in range(rows))
    text = f"{before}{HEAD}{body}{after}"
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    stream = fed(*pieces, width=width)
    while stream.colour(100) is not None:
        pass
    assert stream.lines == markdown_lines(text, width)


@pytest.mark.parametrize(
    "text",
    [
        "> " * 2_000 + "the end",
        "".join("  " * depth + f"- item {depth}\n" for depth in range(120)) + "  " * 120 + "the end",
        "- " * 300 + "the end",
        "> - " * 300 + "the end",
    ],
    ids=["quotes", "lists", "bullets", "both"],
)
def test_what_lies_deeper_than_the_parser_goes_is_shown_as_it_was_written(text: str) -> None:
    shown = "".join(texts(fed(text)))
    assert "the end" in " ".join(shown.split())
    assert "the end" in " ".join("".join(line.text for line in markdown_lines(text, 60)).split())


def test_a_fence_of_many_thousand_lines_is_never_laid_out_again() -> None:
    stream = MarkdownStream(60)
    stream.feed("```python\nx = 0\n")
    lines = 2
    for number in range(10):
        first = stream.feed("".join(f"x = {number}{line}\n" for line in range(2_000)))
        assert first >= lines - 2
        lines = len(stream.lines)
    assert stream.settled >= 20_000


def test_an_item_of_a_task_list_has_a_box_in_place_of_a_bullet_however_often_it_is_laid_out() -> None:
    source = "- [ ] write the `test`\n- [x] read\n  - [X] nested\n- [y] neither\n"
    assert [line.text.strip() for line in streamed(list(source))] == [
        "☐ write the test",
        "☑ read",
        "☑ nested",
        "• [y] neither",
    ]


def test_a_heading_has_the_accent() -> None:
    (line,) = streamed(["## Retry"])
    assert [span.look.tone for span in line.spans if span.text == "Retry"] == [TextTone.YOU]
