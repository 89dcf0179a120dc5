"""Reviews: begin one over changes of git, and the list of its findings, each opened, fixed or dropped."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.machine.states import is_busy
from engine.records import ConversationQuery
from phoenix_tui.features.front_end import TAKE, FrontEnd, ListPage, PageAction, PageRow, require_accepted
from phoenix_tui.features.profiles import use_of
from phoenix_tui.features.review_changes import (
    REVIEW,
    STAGED,
    NothingToReview,
    ReviewFinding,
    ReviewSubject,
    read_changes,
    read_findings,
)
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.features.trust import folder_in_view
from phoenix_tui.models.choice import GUIDE
from tools.files.own_files import read_file, write_file
from tools.git.checkouts import branch_at
from tools.git.commands import open_repository, read_reference
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.records import ConversationRecord

TITLE: Final = "Review: "
"""Beginning of a review's title, by which the newest one of a folder is found."""
BRANCHES: Final = ("main", "master", "develop", "trunk")
"""Names of a branch that others are compared with."""
ALL: Final = 1 << 40
MOST_REVIEWS: Final = 20
FILE: Final = "findings.json"
MOST_BYTES: Final = 1024 * 1024
MOST_KEPT: Final = 200
"""Reviews whose dropped findings are remembered; the one changed longest ago goes first."""
NO_MODEL: Final = "The built-in guide cannot review; /model chooses a model."
ABOUT: Final = "/review BASE reviews the changes since a branch or tag, /review COMMIT one commit."
NONE_YET: Final = f"No changes to review here. {ABOUT}"
SUBJECTS: Final = "Changes to review"
WORKS: Final = "The review is at work; its findings come at its end."
IN_WORDS: Final = "The review handed in no list; its answer says what it found."
FIX: Final = "Fix this finding of a review of the changes here, and check that the fix works:\n\n{findings}"
FIX_ALL: Final = "Fix these findings of a review of the changes here, the gravest first, and check them:\n\n{findings}"
HINTS: Final = (
    (TAKE, "opens"),
    ("review_fix", "fix"),
    ("review_drop", "drop"),
    ("review_fix_all", "fix all"),
    ("review_undo", "undo"),
)


async def review(front: FrontEnd, what: str) -> None:
    """Review the changes that are named; without a name show the findings of the newest review, and what there is to
    review. Raises EngineError.
    """
    page = ReviewPage(front)
    if not what.strip():
        await front.show(page.read)
        return
    try:
        await page.begin(what.strip())
    except NothingToReview as nothing:
        front.tell(str(nothing))


class ReviewPage:
    """Findings of the review in view, or of the newest one of the folder, and the changes that can be reviewed."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front
        self._folder = folder_in_view(front)
        self._dropped = DroppedFindings(front.launch.state_folder)
        self._subjects: tuple[PageRow, ...] | None = None
        """Rows that begin a review; git is asked once while the page is open."""

    async def read(self) -> ListPage:
        """The page as it is now. Raises EngineError."""
        record = await self._find_review()
        rows, note = await self._read_findings(record) if record is not None else ((), "")
        if self._subjects is None:
            self._subjects = await self._list_subjects()
        subjects = self._subjects
        return ListPage(
            title=record.title if record is not None and rows else "Review",
            rows=(*rows, *subjects),
            hints=HINTS if rows else ((TAKE, "reviews"),),
            empty=NONE_YET,
            notes=tuple(filter(None, (note, ABOUT if subjects else ""))),
            outcome="for notes",
            actions=(PageAction(self._front.undo_steps.undo, "review_undo"),),
        )

    async def begin(self, what: str) -> str:
        """Begin a review in a conversation of its own, and bring it into view. Raises EngineError."""
        front = self._front
        if front.model == GUIDE:
            raise EngineError(NO_MODEL)
        services = front.services
        subject = await self._read(what)
        use = use_of(front.launch, services.profiles, REVIEW, front.mode)
        sandbox = front.sandbox if use.launch.sandbox == front.launch.sandbox else None
        options = use.launch.options(use.model or front.model, use.mode or front.mode, sandbox)
        title = f"{TITLE}{subject.title}"
        conversation = await services.engine.create(
            replace(options, cwd=self._folder, title=title, system_prompt="", supervisor=False)
        )
        caps = caps_for(front, conversation)
        require_accepted(await conversation.say(subject.words, (), caps, (subject.attached,)))
        await front.open(conversation.id)
        return ""

    async def _read(self, what: str) -> ReviewSubject:
        services = self._front.services
        is_closed = services.engine.rules.build_denied_test(self._folder)
        return await read_changes(services.runner, self._folder, what, is_closed)

    async def _find_review(self) -> ConversationRecord | None:
        """The review in view, or the newest one of the folder."""
        front = self._front
        if front.conversation is not None and _is_review(front.conversation.record):
            return front.conversation.record
        engine = front.services.engine
        query = ConversationQuery(cwd=self._folder, title_contains=TITLE, limit=MOST_REVIEWS)
        for row in await engine.list(query):
            record = await engine.ports.store.conversation(row.id)
            if record is not None and _is_review(record):
                return record
        return None

    async def _read_findings(self, record: ConversationRecord) -> tuple[tuple[PageRow, ...], str]:
        """Rows of the findings that are not dropped, and a sentence where there are none."""
        engine = self._front.services.engine
        found = read_findings(await engine.bulk.newest(record.id, ALL))
        if found is None:
            at_work = any(one.id == record.id and is_busy(one.state) for one in engine.live())
            return (), f"{record.title}: {WORKS if at_work else IN_WORDS}"
        dropped = await asyncio.to_thread(self._dropped.read, record.id)
        left = [one for one in found if key_of(one) not in dropped]
        gone = len(found) - len(left)
        if not left:
            return (), f"{record.title}: {'all findings are fixed or dropped' if found else 'no findings'}."
        rows = tuple(self._row(record, one, left) for one in left)
        return rows, f"{pluralize(gone, 'finding')} more, fixed or dropped." if gone else ""

    def _row(self, record: ConversationRecord, finding: ReviewFinding, left: list[ReviewFinding]) -> PageRow:
        first, _, _ = finding.text.partition("\n")
        actions = (
            PageAction(partial(self._open, finding), f"{TAKE} review_open", "open the file at this line"),
            PageAction(partial(self._fix, record, [finding]), "review_fix", "fix it", closes=True),
            PageAction(partial(self._drop, record, [finding], "Dropped"), "review_drop", "drop it"),
            PageAction(partial(self._fix, record, left), "review_fix_all", "fix all of them", closes=True),
        )
        return PageRow(
            section=finding.severity.capitalize(),
            key=key_of(finding),
            words=finding.place,
            meaning=first,
            about=tuple(finding.text.splitlines()),
            spoken=f"{finding.severity}: {finding.place}: {finding.text}",
            name=finding.place,
            actions=actions,
        )

    async def _open(self, finding: ReviewFinding) -> str:
        """Open the file in the user's editor. Raises EngineError where it is gone, or lies outside the folder."""
        path = self._folder / finding.file
        real = await asyncio.to_thread(path.resolve)
        if not real.is_relative_to(await asyncio.to_thread(self._folder.resolve)) or not real.is_file():
            raise EngineError(f"There is no file {finding.file} here.")
        await self._front.edit(real, "Open in your editor: ", line=max(finding.line, 1))
        return ""

    async def _drop(self, record: ConversationRecord, findings: list[ReviewFinding], word: str) -> str:
        keys = [key_of(one) for one in findings]
        await asyncio.to_thread(self._dropped.add, record.id, keys)

        async def restore() -> str:
            await asyncio.to_thread(self._dropped.remove, record.id, keys)
            return "Restored."

        self._front.undo_steps.add(restore)
        return f"{word}: {findings[0].place}."

    async def _fix(self, record: ConversationRecord, findings: list[ReviewFinding]) -> str:
        """Ask for the fix in the conversation in view, or in a new one where that is a review; it waits in the queue
        of one at work. Raises EngineError.
        """
        front = self._front
        listed = "\n".join(f"- {one.place} ({one.severity}): {one.text}" for one in findings)
        text = (FIX if len(findings) == 1 else FIX_ALL).format(findings=listed)
        conversation = await self._choose_fixer(findings)
        if is_busy(conversation.state):
            require_accepted(await conversation.queue.add(text))
        else:
            require_accepted(await conversation.say(text, (), caps_for(front, conversation)))
        await self._drop(record, findings, "Sent")
        if front.conversation is None or front.conversation.id != conversation.id:
            await front.open(conversation.id)
        return ""

    async def _choose_fixer(self, findings: list[ReviewFinding]) -> Conversation:
        """The conversation in view, or a new one where that cannot edit."""
        front = self._front
        shown = front.conversation
        if shown is None or not (_is_review(shown.record) or shown.record.agent is not None):
            return await front.current()
        options = front.launch.options(front.model, front.launch.permission_mode)
        title = f"Fix {findings[0].place}" if len(findings) == 1 else f"Fix {pluralize(len(findings), 'finding')}"
        return await front.services.engine.create(replace(options, cwd=self._folder, title=title))

    async def _list_subjects(self) -> tuple[PageRow, ...]:
        """Rows that begin a review: whatever of the usual ones has changes. Raises EngineError."""
        rows: list[PageRow] = []
        for what in ("", STAGED, *await self._find_bases(), "HEAD"):
            try:
                subject = await self._read(what)
            except NothingToReview:
                continue
            except EngineError:
                if not what:
                    raise
                continue
            action = PageAction(partial(self.begin, what), TAKE, f"review the {subject.title}", closes=True)
            spoken = f"review the {subject.title}: {subject.size}"
            key = f"review {what}"
            rows.append(PageRow(SUBJECTS, key, subject.title, subject.size, spoken=spoken, actions=(action,)))
        return tuple(rows)

    async def _find_bases(self) -> tuple[str, ...]:
        """The branch that this one is usually compared with, if that is another one."""
        reader = await open_repository(self._front.services.runner, self._folder)
        if reader is None:
            return ()

        def find() -> tuple[str, ...]:
            own = branch_at(reader.repository.own)
            common = reader.repository.common
            named = (one for one in BRANCHES if one != own and read_reference(common, f"refs/heads/{one}"))
            return tuple(named)[:1]

        return await asyncio.to_thread(find)


def _is_review(record: ConversationRecord) -> bool:
    return record.profile == REVIEW and record.agent is None


def key_of(finding: ReviewFinding) -> str:
    """Key of a finding within its review, which tells nothing of it."""
    return hashlib.sha256(f"{finding.place} {finding.text}".encode("utf-8", "replace")).hexdigest()[:16]


class DroppedFindings:
    """The findings of each review that the user fixed or dropped, in a file beside the prompt history."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def read(self, review_id: str) -> frozenset[str]:
        """Keys of the dropped findings of a review."""
        return frozenset(self._load().get(review_id, ()))

    def add(self, review_id: str, keys: list[str]) -> None:
        """Remember them. Raises OSError."""
        kept = self._load()
        kept[review_id] = [*dict.fromkeys((*kept.pop(review_id, ()), *keys))]
        self._store(kept)

    def remove(self, review_id: str, keys: list[str]) -> None:
        """Forget them again. Raises OSError."""
        kept = self._load()
        kept[review_id] = [one for one in kept.pop(review_id, ()) if one not in keys]
        self._store(kept)

    def _store(self, kept: dict[str, list[str]]) -> None:
        newest = dict(list(kept.items())[-MOST_KEPT:])
        write_file(self._path, msgspec.json.encode(newest))

    def _load(self) -> dict[str, list[str]]:
        try:
            return msgspec.json.decode(read_file(self._path, MOST_BYTES), type=dict[str, list[str]])
        except (OSError, msgspec.DecodeError):
            return {}
