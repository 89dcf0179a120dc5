"""Rewind: choose a prompt, see the changes on disk, choose the restored parts; the tree of branches."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final

from msgspec import Struct
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.ports.files import BranchRow, FileChange
from engine.rewind.rewind import Preview, PreviewFile, RewindList, RewindPoint, RewindScope
from phoenix_tui.features.changes import ShownFile, files_of, sign_of, when, words_of
from phoenix_tui.features.rewind import HowFar, Instead, OtherWay, RewindTarget
from phoenix_tui.keys import keymap
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.markdown.lines import cut_middle
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet
from phoenix_tui.modals.text_sheet import DiffSheet
from phoenix_tui.text.context_text import describe_unrestored
from phoenix_tui.text.labels import Tone, age
from phoenix_tui.widgets.bases import first_visible, move_choice
from tools.clean import clean_line
from tools.contract import DiffDisplay
from tools.wording import pluralize

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
    right = Content.assemble((pluralize(len(files), "file") if files else "", Tone.QUIET.value))
    if files:
        right = Content.assemble(right, "  ", pad_left(lines, COUNT_WIDTH))
    words = clean_line(point.text) or "(only an image)"
    images = f"  [{pluralize(point.images, 'image')}]" if point.images else ""
    mark = _mark(plain) if chosen else " "
    left = Content.assemble(f"{mark} ", (f"{when(point.at, now):<{WHEN_WIDTH}}  ", Tone.QUIET.value), words, images)
    return join_row(left, right, width, chosen=chosen)


def file_row(file: ShownFile, width: int, *, chosen: bool) -> Content:
    """One file of a set of changes; a star marks changes by others."""
    lead = Content.styled(f"{file.sign} ", SIGNS[file.sign].value)
    right = lines_of(file.added, file.removed)
    if file.remark:
        right = Content.assemble(right, (" *", Tone.NEEDS_YOU.value))
    return make_named_row(lead, file.name, right, width, chosen=chosen)


def sum_row(files: Sequence[ShownFile]) -> Content:
    """7 files +120 -30; empty where there are none."""
    if not files:
        return Content("")
    counts = lines_of(sum(one.added for one in files), sum(one.removed for one in files))
    return Content.assemble((pluralize(len(files), "file"), Tone.QUIET.value), "  ", counts)


def stay_row(width: int, *, chosen: bool, plain: bool = False) -> Content:
    """The row that changes nothing: where the list begins."""
    left = Content.assemble(
        f"{_mark(plain) if chosen else ' '} ", (f"{'now':<{WHEN_WIDTH}}  ", Tone.QUIET.value), "cancel"
    )
    return join_row(left, Content(""), width, chosen=chosen)


def change_row(change: FileChange, width: int) -> Content:
    """One file of a turn."""
    sign = sign_of(change)
    lead = Content.styled(f"{sign} ", SIGNS[sign].value)
    return make_named_row(lead, change.name, lines_of(change.added, change.removed), width)


def preview_row(file: PreviewFile, width: int, *, chosen: bool, taken: bool, plain: bool = False) -> Content:
    """One file that would go back, and whether it will."""
    change = file.change
    verb = "delete" if change.after is None else "create" if change.before is None else "restore"
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
    return make_named_row(lead, change.name, right, width, chosen=chosen)


def sum_of(preview: Preview, taken: frozenset[bytes]) -> str:
    """Effect on the files, in words."""
    files = [one for one in preview.files if not one.change.only_folder]
    goes = [one for one in files if one.possible and (not one.conflict or one.change.path in taken)]
    stays = len(files) - len(goes)
    if not files:
        return "all files are already in that state"
    words = f"restores {pluralize(len(goes), 'file')}"
    return f"{words}, keeps {stays} as {'it is' if stays == 1 else 'they are'}" if stays else words


def make_named_row(lead: Content, name: str, right: Content, width: int, *, chosen: bool = False) -> Content:
    """A row about a file: counts stay, and of a long path the middle goes."""
    room = width - lead.cell_length - right.cell_length - (1 if right.cell_length else 0)
    return join_row(Content.assemble(lead, cut_middle(clean_line(name), max(room, 1))), right, width, chosen=chosen)


def join_row(left: Content, right: Content, width: int, *, chosen: bool = False) -> Content:
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


INDENT: Final = 2
SHARE: Final = 0.92
"""Share of the screen's height that the sheet may take."""
FRAME: Final = 3
"""Rows of that for border and margin."""
FILES_SHOWN: Final = 6


class RewindSheet(Sheet[RewindTarget]):
    """Prompts, newest first. The first row stays here, so that Enter by habit changes nothing."""

    DEFAULT_CSS = """
    RewindSheet { & > .sheet { max-height: 92%; } & Static { height: auto; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS),
        *bindings(Scope.REWIND, "rewind_undo", "rewind_branches", "rewind_finish", "rewind_take_back"),
    ]

    def __init__(self, found: RewindList, *, plain: bool = False) -> None:
        super().__init__()
        self._found = found
        self._plain = plain
        self._chosen = 0

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="rewind", markup=False)

    def on_mount(self) -> None:
        self._draw()

    def action_move(self, by: int) -> None:
        self._chosen = move_choice(self._chosen, by, len(self._found.points) + 1)
        self._draw()

    def action_take(self) -> None:
        """Continue with the chosen prompt; the first row closes."""
        self.dismiss(self._point())

    def action_order(self, name: str) -> None:
        """Another way out, where there is one."""
        way = OtherWay[name.upper()]
        offered = {
            OtherWay.UNDO: self._found.takeback is not None,
            OtherWay.BRANCHES: True,
            OtherWay.FINISH: self._found.unfinished > 0,
            OtherWay.TAKE_BACK: self._found.unfinished > 0,
        }
        if offered[way]:
            self.dismiss(way)

    def _point(self) -> RewindPoint | None:
        return self._found.points[self._chosen - 1] if self._chosen else None

    def _draw(self) -> None:
        if self.is_mounted:
            self.query_one("#rewind", Static).update(Content("\n").join(self._rows()))

    def _rows(self) -> list[Content]:
        width = self.measure
        top = [self._heading(width)]
        if self._found.unfinished:
            ways = hint(("rewind_finish", "finishes it"), ("rewind_take_back", "undoes it"))
            words = f"A restore of {pluralize(self._found.unfinished, 'file')} was interrupted; {ways}."
            top.append(Content.styled(words, Tone.NEEDS_YOU.value).truncate(width, ellipsis=True))
        below = self._files(width)
        room = max(int(self.size.height * SHARE) - len(top) - len(below) - FRAME, FRAME)
        return [*top, *self._list(width, room), *below]

    def _heading(self, width: int) -> Content:
        long, short = [("sheet_take", "selects")], [("sheet_take", "selects")]
        if self._found.takeback is not None:
            at = when(self._found.takeback.at, time.time())
            long.append(("rewind_undo", f"undoes the rewind of {at}"))
            short.append(("rewind_undo", f"undo {at}"))
        if self._found.branches > 1:
            long.append(("rewind_branches", f"shows {self._found.branches} branches"))
            short.append(("rewind_branches", "branches"))
        heading = _heading(hint(*long))
        return heading if heading.cell_length <= width else _heading(hint(*short)).truncate(width, ellipsis=True)

    def _list(self, width: int, room: int) -> list[Content]:
        points, now = self._found.points, time.time()
        first = first_visible(self._chosen, len(points) + 1, room)
        rows: list[Content] = []
        for place in range(first, min(first + room, len(points) + 1)):
            chosen = place == self._chosen
            if place == 0:
                rows.append(stay_row(width, chosen=chosen, plain=self._plain))
            else:
                rows.append(point_row(points[place - 1], width, now, chosen=chosen, plain=self._plain))
        return rows

    def _files(self, width: int) -> list[Content]:
        """The files of the chosen turn; always as many rows, so that the list does not move."""
        point = self._point()
        files = files_of(point.files) if point else []
        shown = files if len(files) <= FILES_SHOWN else files[: FILES_SHOWN - 1]
        rows = [Content.assemble("  ", change_row(one, width - INDENT)) for one in shown]
        if len(shown) < len(files):
            rows.append(Content.styled(f"  and {len(files) - len(shown)} more", Tone.QUIET.value))
        if point and not files:
            rows.append(Content.styled("  This turn changed no file.", Tone.QUIET.value))
        most = min(FILES_SHOWN, max((len(files_of(one.files)) for one in self._found.points), default=0) or 1)
        rows += [Content("")] * (most - len(rows))
        note = describe_unrestored(point.coverage) if point else ""
        return [Content(""), *rows, Content.styled(note, Tone.QUIET.value).truncate(width, ellipsis=True)]


def _heading(keys: str) -> Content:
    return Content.assemble(("Rewind", "bold"), (f"   {keys}", Tone.QUIET.value))


DiffOf = Callable[[FileChange], Awaitable[DiffDisplay | None]]
LEAST_FILES: Final = 3
COVERED_ROWS: Final = 3
"""Rows about files that a rewind does not restore."""


class LastLook(Struct, frozen=True):
    """Choice to confirm."""

    heading: str
    preview: Preview
    ways: tuple[tuple[RewindScope, str], ...]
    """Parts that a rewind can restore, and their names."""
    summarizes: bool = False
    """True when the earlier messages can become a summary instead."""


class RewindConfirmSheet(Sheet[HowFar]):
    """Confirms a rewind: Up and Down go through the ways and then the files; Enter takes the marked way."""

    DEFAULT_CSS = """
    RewindConfirmSheet { & > .sheet { max-height: 92%; } & Static { height: auto; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *keymap.bindings(Scope.ROWS),
        *keymap.bindings(Scope.REWIND, "rewind_overwrite", "rewind_diff", "rewind_summarize"),
    ]

    def __init__(self, look: LastLook, diff: DiffOf, *, plain: bool = False) -> None:
        super().__init__()
        self._look = look
        self._diff = diff
        self._plain = plain
        self._files = tuple(one for one in look.preview.files if not one.change.only_folder)
        self._overwrite: frozenset[bytes] = frozenset()
        self._way = 0
        self._place = 0

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="go-back", markup=False)

    def on_mount(self) -> None:
        self._draw()

    def action_move(self, by: int) -> None:
        """Another way, or another file."""
        self._place = move_choice(self._place, by, len(self._look.ways) + len(self._files))
        if self._place < len(self._look.ways):
            self._way = self._place
        self._draw()

    def action_take(self) -> None:
        """Go back this way."""
        self.dismiss(HowFar(self._look.ways[self._way][0], self._overwrite))

    def action_summarize(self) -> None:
        """Choose the summary of the earlier messages instead of a rewind."""
        if self._look.summarizes:
            self.dismiss(HowFar(Instead.SUMMARY))

    def action_overwrite(self) -> None:
        """Overwrite the changes of another author, or keep them."""
        file = self._file()
        if file is not None and file.conflict and file.possible:
            self._overwrite ^= {file.change.path}
            self._draw()

    def action_diff(self) -> None:
        """Show the change that the rewind makes to the selected file."""
        if file := self._file():
            self.run_worker(self._read(file.change), group="diff")

    async def _read(self, change: FileChange) -> None:
        """Read the diff in the background: a folder may be slow."""
        found = await self._diff(change)
        lines = found if found is not None and found.diff else None
        if self.is_current:
            self.app.push_screen(DiffSheet(lines, "" if lines else words_of(change)))

    def _file(self) -> PreviewFile | None:
        place = self._place - len(self._look.ways)
        return self._files[place] if 0 <= place < len(self._files) else None

    def _draw(self) -> None:
        if self.is_mounted:
            self.query_one("#go-back", Static).update(Content("\n").join(self._rows()))

    def _rows(self) -> list[Content]:
        width = self.measure
        head = Content.assemble((self._look.heading, "bold")).truncate(width, ellipsis=True)
        top = [head, *self._way_rows(width), Content(""), self._sum(width)]
        below = [Content.styled(row, Tone.QUIET.value).truncate(width, ellipsis=True) for row in self._notes()]
        room = max(int(self.size.height * SHARE) - len(top) - len(below) - FRAME, LEAST_FILES)
        return [*top, *self._file_rows(width, room), *below]

    def _way_rows(self, width: int) -> list[Content]:
        rows: list[Content] = []
        for place, (_, words) in enumerate(self._look.ways):
            chosen = place == self._way
            mark = (">" if self._plain else "›") if chosen else " "
            row = Content(f"{mark} {words}").truncate(width, ellipsis=True, pad=True)
            rows.append(
                Content.styled(row.plain, "reverse" if chosen and self._place == place else "bold" if chosen else "")
            )
        return rows

    def _sum(self, width: int) -> Content:
        touches = self._look.ways[self._way][0] is not RewindScope.CONVERSATION
        words = f"On disk: {sum_of(self._look.preview, self._overwrite)}" if touches else "On disk: nothing changes"
        if self._look.preview.refusal:
            words = self._look.preview.refusal
        return Content.styled(words, Tone.NEEDS_YOU.value if self._look.preview.refusal else "bold").truncate(
            width, ellipsis=True
        )

    def _file_rows(self, width: int, room: int) -> list[Content]:
        place = self._place - len(self._look.ways)
        first = first_visible(place, len(self._files), room)
        quiet = self._look.ways[self._way][0] is RewindScope.CONVERSATION
        rows = [
            preview_row(
                one,
                width,
                chosen=number == place,
                taken=one.change.path in self._overwrite,
                plain=self._plain,
            )
            for number, one in enumerate(self._files[first : first + room], start=first)
        ]
        return [Content.styled(row.plain, Tone.QUIET.value) for row in rows] if quiet else rows

    def _notes(self) -> list[str]:
        conflict = any(one.conflict and one.possible for one in self._files)
        overwrites = ("rewind_overwrite", "overwrites") if conflict else ""
        shows = ("rewind_diff", "shows diff") if self._files else ""
        summarizes = ("rewind_summarize", "summarizes instead") if self._look.summarizes else ""
        notes = [hint(("sheet_take", "rewinds"), overwrites, shows, summarizes)]
        covered = describe_unrestored(self._look.preview.coverage) if not self._look.preview.refusal else ""
        return [*textwrap.wrap(covered, self.measure, max_lines=COVERED_ROWS, placeholder=" …"), *notes]


PLAIN_LINES: Final = {"├─ ": "|- ", "└─ ": "`- ", "│  ": "|  "}


class TreeRow(Struct, frozen=True):
    """One branch and the lines before it."""

    lines: str
    branch: BranchRow


def tree_rows(branches: Sequence[BranchRow]) -> list[TreeRow]:
    """Parents before children, each below the one that it branched off, the latest fork point first."""
    children: dict[str, list[BranchRow]] = {}
    known = {row.id for row in branches}
    for row in branches:
        children.setdefault(row.branch_of if row.branch_of in known else "", []).append(row)
    rows: list[TreeRow] = []

    def add(parent: str, lead: str) -> None:
        members = children.pop(parent, [])
        for place, row in enumerate(members):
            last = place == len(members) - 1
            is_root = parent == ""
            rows.append(TreeRow(lead if is_root else f"{lead}{'└─ ' if last else '├─ '}", row))
            add(row.id, lead if is_root else f"{lead}{'   ' if last else '│  '}")

    add("", "")
    return rows


class BranchesSheet(PickerSheet):
    """Type to filter; Enter opens the branch in place of this one. Gives its id."""

    TAKES = "Enter opens"

    def __init__(self, branches: Sequence[BranchRow], current: str, *, plain: bool = False) -> None:
        now = time.time()
        super().__init__(
            "Branches", [_choice(row, current, now, plain) for row in tree_rows(branches)], current=current
        )


def _choice(row: TreeRow, current: str, now: float, plain: bool) -> PickerRow:
    branch, lines = row.branch, row.lines
    if plain:
        for sign, instead in PLAIN_LINES.items():
            lines = lines.replace(sign, instead)
    words = branch.first_own_prompt or branch.title or "empty"
    place = (
        (f"after message {branch.branch_seq}: " if branch.branch_seq else "from the start: ")
        if branch.branch_of
        else ""
    )
    here = "you are here" if branch.id == current else "in the trash" if branch.deleted else ""
    remark = " · ".join(
        part for part in (here, pluralize(branch.message_count, "message"), age(now - branch.updated_at)) if part
    )
    return PickerRow(branch.id, f"{lines}{place}{words}", remark)
