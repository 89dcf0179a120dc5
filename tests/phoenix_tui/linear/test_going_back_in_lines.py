"""Questions in lines before a rewind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from engine.ports.files import Coverage
from engine.rewind.rewind import Preview, PreviewFile, RewindList, RewindScope
from phoenix_tui.features.rewind import HowFar, Instead, OtherWay
from phoenix_tui.linear.history import LineRewindAsker
from tests.support.fake_rewinding import change, point

HERS = PreviewFile(change("notes.md", 1, 2), "changed since then by someone else")


@dataclass
class Front:
    """Answers one question after the other with the place of a row."""

    answers: list[int | None]
    said: list[str] = field(default_factory=list[str])

    def say(self, *lines: str) -> None:
        self.said += lines

    async def choose(self, heading: str, rows: Sequence[str]) -> int | None:
        self.said += [heading, *rows]
        return self.answers.pop(0)


def asker(*answers: int | None) -> tuple[LineRewindAsker, Front]:
    front = Front(list(answers))
    return LineRewindAsker(cast("Any", front), cast("Any", None)), front


async def test_what_a_crash_cut_off_is_finished_or_taken_back() -> None:
    found = RewindList(Path("/"), (point(1, "Fix it"),), None, 3, 1)
    for place, way in ((1, OtherWay.FINISH), (2, OtherWay.TAKE_BACK)):
        here, front = asker(place)
        assert await here.which_prompt(found) is way
        assert front.said[-2:] == ["Finish the interrupted restore: 3 files", "Undo the interrupted restore: 3 files"]


async def test_the_files_of_others_are_asked_about_unless_no_file_goes_back() -> None:
    preview = Preview((HERS,), Coverage())
    here, _ = asker(0, 1)
    assert await here.how_far(point(1, "Fix it"), preview, tuple(RewindScope)) == HowFar(
        RewindScope.BOTH, frozenset({b"notes.md"})
    )
    here, _ = asker(1)
    assert await here.how_far(point(1, "Fix it"), preview, tuple(RewindScope)) == HowFar(RewindScope.CONVERSATION)
    here, _ = asker(0, None)
    assert await here.how_far(point(1, "Fix it"), preview, tuple(RewindScope)) is None
    here, front = asker(3)
    assert await here.how_far(point(1, "Fix it"), preview, (*RewindScope, Instead.SUMMARY)) == HowFar(Instead.SUMMARY)
    assert front.said[-1] == "No rewind; summarize the messages before this prompt"
