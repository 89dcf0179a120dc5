"""The rows of going back: prompts and files. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.content import Content

from engine.ports.files import FileChange
from engine.rewind.values import Preview, PreviewFile, RewindPoint
from phoenix_tui.features.changes import ShownFile, files_of, sign_of, when
from phoenix_tui.markdown.lines import cut_middle
from phoenix_tui.text.labels import Tone
from tools.clean import clean_line
from tools.wording import counted

WHEN_WIDTH: Final = 6
COUNT_WIDTH: Final = 10
REMARK_PERCENT: Final = 50
"""Per cent of a row that the remark about a file and its counts may take from a long name."""
SIGNS: Final = {"+": Tone.GOOD, "-": Tone.BAD, "~": Tone.WORK}


def lines_of(added: int, removed: int) -> Content:
    """+42 -7, coloured; empty where nothing is counted."""
    parts: list[str | tuple[str, str]] = []
    if added:
        parts.append((f"+{added}", Tone.GOOD.value))
    if added and removed:
        parts.append(" ")
    if removed:
        parts.append((f"-{removed}", Tone.BAD.value))
    return Content.assemble(*parts)


def point_row(point: RewindPoint, width: int, now: float, *, chosen: bool, plain: bool = False) -> Content:
    """One prompt: time, its first words, the files of its turn."""
    files = files_of(point.files)
    lines = lines_of(sum(one.added for one in files), sum(one.removed for one in files))
    right = Content.assemble((counted(len(files), "file") if files else "", Tone.QUIET.value))
    if files:
        right = Content.assemble(right, "  ", pad_left(lines, COUNT_WIDTH))
    words = clean_line(point.text) or "(only an image)"
    images = f"  [{counted(point.images, 'image')}]" if point.images else ""
    mark = _mark(plain) if chosen else " "
    left = Content.assemble(f"{mark} ", (f"{when(point.at, now):<{WHEN_WIDTH}}  ", Tone.QUIET.value), words, images)
    return joined_row(left, right, width, chosen=chosen)


def file_row(file: ShownFile, width: int, *, chosen: bool) -> Content:
    """One file of a set of changes; a star marks changes by others."""
    lead = Content.styled(f"{file.sign} ", SIGNS[file.sign].value)
    right = lines_of(file.added, file.removed)
    if file.remark:
        right = Content.assemble(right, (" *", Tone.NEEDS_YOU.value))
    return named_row(lead, file.name, right, width, chosen=chosen)


def sum_row(files: Sequence[ShownFile]) -> Content:
    """7 files +120 -30; empty where there are none."""
    if not files:
        return Content("")
    counts = lines_of(sum(one.added for one in files), sum(one.removed for one in files))
    return Content.assemble((counted(len(files), "file"), Tone.QUIET.value), "  ", counts)


def stay_row(width: int, *, chosen: bool, plain: bool = False) -> Content:
    """The row that changes nothing: where the list begins."""
    left = Content.assemble(
        f"{_mark(plain) if chosen else ' '} ", (f"{'now':<{WHEN_WIDTH}}  ", Tone.QUIET.value), "cancel"
    )
    return joined_row(left, Content(""), width, chosen=chosen)


def change_row(change: FileChange, width: int) -> Content:
    """One file of a turn."""
    sign = sign_of(change)
    lead = Content.styled(f"{sign} ", SIGNS[sign].value)
    return named_row(lead, change.name, lines_of(change.added, change.removed), width)


def preview_row(file: PreviewFile, width: int, *, chosen: bool, taken: bool, plain: bool = False) -> Content:
    """One file that would go back, and whether it will."""
    change = file.change
    verb = _verb(change)
    mark = _mark(plain) if chosen else " "
    if file.conflict and not file.possible:
        verb, tone = "keep", Tone.QUIET
    elif file.conflict:
        verb, tone = (verb, Tone.BAD) if taken else ("keep", Tone.NEEDS_YOU)
    else:
        tone = {"delete": Tone.BAD, "create": Tone.GOOD}.get(verb, Tone.WORK)
    counts = lines_of(change.added, change.removed)
    gap = "  " if file.conflict and counts.cell_length else ""
    remark = Content.styled(file.conflict, Tone.NEEDS_YOU.value) if file.conflict else Content("")
    lead = Content.assemble(f"{mark} ", (f"{verb:<8}", tone.value))
    beside_name = width - lead.cell_length - cell_len(clean_line(change.name)) - 1
    room = max(width * REMARK_PERCENT // 100, beside_name) - counts.cell_length - len(gap)
    right = Content.assemble(remark.truncate(max(room, 1), ellipsis=True), gap, counts)
    return named_row(lead, change.name, right, width, chosen=chosen)


def sum_of(preview: Preview, taken: frozenset[bytes]) -> str:
    """Effect on the files, in words."""
    files = [one for one in preview.files if not one.change.only_folder]
    goes = [one for one in files if one.possible and (not one.conflict or one.change.path in taken)]
    stays = len(files) - len(goes)
    if not files:
        return "all files are already in that state"
    words = f"restores {counted(len(goes), 'file')}"
    return f"{words}, keeps {stays} as {'it is' if stays == 1 else 'they are'}" if stays else words


def named_row(lead: Content, name: str, right: Content, width: int, *, chosen: bool = False) -> Content:
    """A row about a file: counts stay, and of a long path the middle goes."""
    room = width - lead.cell_length - right.cell_length - (1 if right.cell_length else 0)
    return joined_row(Content.assemble(lead, cut_middle(clean_line(name), max(room, 1))), right, width, chosen=chosen)


def joined_row(left: Content, right: Content, width: int, *, chosen: bool = False) -> Content:
    """Words at the left, cut to the room beside the right; the chosen row reversed."""
    right = right.truncate(max(width * 2 // 3, 1), ellipsis=True)
    room = max(width - right.cell_length - (1 if right.cell_length else 0), 1)
    row = Content.assemble(left.truncate(room, ellipsis=True, pad=True), " " if right.cell_length else "", right)
    return Content.styled(row.plain, "reverse") if chosen else row


def pad_left(content: Content, width: int) -> Content:
    """Right-align `content` in `width` cells."""
    return Content.assemble(" " * max(width - content.cell_length, 0), content)


def _mark(plain: bool) -> str:
    return ">" if plain else "›"


def _verb(change: FileChange) -> str:
    if change.after is None:
        return "delete"
    return "create" if change.before is None else "restore"
