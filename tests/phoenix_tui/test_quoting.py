"""Changes as they are quote_change in a message."""

from __future__ import annotations

import pytest

from phoenix_tui.text.shell_words import DiffPassage, fence, passages, quote_change
from tools.contract import DiffDisplay

DIFF = """--- a
+++ b
@@ -1,4 +1,4 @@
-one
+eins
 two
-three
 four
@@ -20,2 +19,4 @@
 twenty
+more
+and more
\\ No newline at end of file
"""


def test_every_place_has_the_line_of_the_file_as_it_is_now() -> None:
    assert passages(DIFF) == [
        DiffPassage(1, "-one\n+eins"),
        DiffPassage(3, "-three"),
        DiffPassage(20, "+more\n+and more"),
    ]


def test_a_new_file_begins_at_its_first_line() -> None:
    assert passages("--- /dev/null\n+++ b\n@@ -0,0 +1,2 @@\n+a\n+b\n") == [DiffPassage(1, "+a\n+b")]


@pytest.mark.parametrize(("place", "words"), [(0, "About a.py, line 1:"), (2, "About a.py, line 20:"), (9, "line 20:")])
def test_one_change_is_named_by_file_and_line(place: int, words: str) -> None:
    assert words in quote_change(DiffDisplay("a.py", DIFF, 3, 2), place)


def test_a_change_without_lines_is_named_by_its_file_alone() -> None:
    assert quote_change(DiffDisplay("a.py", "", 0, 0), 0) == "About a.py: "


def test_what_is_selected_is_quoted_alone_and_names_are_harmless() -> None:
    assert quote_change(DiffDisplay("a\x1b[31m.py", DIFF, 3, 2), 0, "  two\n") == "About a.py:\n```\n  two\n```\n"


def test_code_with_a_fence_in_it_has_a_longer_one_around_it() -> None:
    assert fence("```\nx\n```") == "````\n```\nx\n```\n````"
