"""Growing Markdown: however the text is cut, the lines are those of the whole."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phoenix_tui.markdown.lines import StyledLine, cells
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
