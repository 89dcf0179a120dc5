"""Diffs as whole texts: before and after are found from the file on disk, in both directions."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.acp.tool_calls import make_edit, make_parts
from tools.files.content import diff_display

TEXTS = st.lists(st.sampled_from(["a", "b", "same", "", "@@ -1 +1 @@", "-x", "\\ No newline", "ü\r"]), max_size=30).map(
    "\n".join
)


@given(TEXTS, TEXTS, st.booleans())
async def test_both_texts_are_whole(old: str, new: str, is_done: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.txt"
        file.write_bytes((new if is_done else old).encode())
        shown = await make_edit(file, diff_display("a.txt", old, new), is_done=is_done)
    assert (shown.old_text, shown.new_text) == (old, new)


async def test_of_another_text_the_changed_parts_are_shown(tmp_path: Path) -> None:
    old = "".join(f"{number}\n" for number in range(50))
    display = diff_display("a.txt", old, old.replace("25\n", "changed\n"))
    file = tmp_path / "a.txt"
    file.write_text("something else\n")
    for found in (await make_edit(file, display, is_done=True), make_parts(file, display)):
        assert found.old_text == "22\n23\n24\n25\n26\n27\n28\n"
        assert found.new_text == "22\n23\n24\nchanged\n26\n27\n28\n"


async def test_neither_links_nor_huge_files_are_read(tmp_path: Path) -> None:
    display = diff_display("a.txt", "a\n", "b\n")
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("b\n" + "x" * (1 << 20))
    link.symlink_to(real)
    for file in (real, link, tmp_path, tmp_path / "none"):
        shown = await make_edit(file, display, is_done=True)
        assert (shown.old_text, shown.new_text) == ("a\n", "b\n")
