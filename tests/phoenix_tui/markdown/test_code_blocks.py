"""The pieces of code of a growing answer: as written, and their places, however the text arrives."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from phoenix_tui.markdown.code import CodeBlock
from phoenix_tui.markdown.stream import MarkdownStream

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
