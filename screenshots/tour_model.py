"""Model of the tour: a conversation's words select its next reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from screenshots import scenes_agents, scenes_rewind
from screenshots.dialogue import PATCHES, READS, TESTS, does, runs, says, stops_in
from tests.support.journeys import Answer, picks
from tests.support.loopback import Seen
from tests.support.story import FIX, REPORT

CLEAN: Final = "Clean the build folder"
CHART: Final = "What is wrong in this chart?"
TALLY: Final = "Add a counter for the tries"
BESIDE: Final = "which file holds the limit?"
SCRIPTS: Final[dict[str, Iterable[Answer]]] = {
    FIX: (READS, TESTS, PATCHES, stops_in(REPORT)),
    TALLY: (*scenes_rewind.FIRST, *scenes_rewind.SECOND, *scenes_rewind.THIRD, says("It is one line.")),
    CLEAN: (
        runs("rm -rf build && make all", "The build folder holds stale objects. I start from scratch."),
        does("Then only what is stale.", ("bash", "toolu_2", {"command": "find build -name '*.o' -delete"})),
        says("I leave the folder as it is."),
    ),
    CHART: (says("One bar stands out: the **sixth** minute."),),
}
"""Replies of a conversation in their order, by the first thing said in it."""
AGENTS: Final = (scenes_agents.ASKED, scenes_agents.TESTS, scenes_agents.DOCS, scenes_agents.QUEUE)


def model() -> Answer:
    """A new one for each size: every script begins again."""
    scripts: dict[str, Iterator[Answer]] = {words: iter(replies) for words, replies in SCRIPTS.items()}

    def choose(seen: Seen) -> Answer:
        if not seen.body:  # which models there are
            return says("Done.")
        told = scenes_agents.asked_in(seen)
        if BESIDE in told:
            return says("`LIMIT` stands in `relay/backoff.py`, line 3; `delay` reads it.")
        if any(task in told for task in AGENTS):
            return scenes_agents.at_work(seen)
        script = next((replies for words, replies in scripts.items() if words in told), iter(()))
        return next(script, says("Done.")) if seen.json.get("tools") else says("Done.")

    return picks(choose)
