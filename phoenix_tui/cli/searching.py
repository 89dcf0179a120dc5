"""`phoenix conversations search`: the words and filters of the search screen, from a script."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.ports import Library
from engine.records import SearchHit
from engine.search import SearchQuery, SearchSyntaxError, occurrences, parse_search
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.output import write_json, write_line, write_table
from phoenix_tui.cli.times import local_time, utc_time
from tools.contract import JsonObject

SHORT_ID: Final = 8
"""Characters of an id in tables: a prefix that `--resume` takes."""
RANKED: Final = 300
"""Hits ranked together, of which the best are printed."""
PATIENCE: Final = 3600.0
"""Seconds one search may take: a script wants all results."""


class SearchCommand(Struct, frozen=True):
    """One search over a whole store."""

    library: Library
    arguments: CommandArguments

    async def run(self) -> None:
        """Print the results, the best first.

        Raises:
            CommandError: the search is invalid.
        """
        query = self._query()
        await self._index_all()
        hits, limit = list[SearchHit](), self.arguments.limit
        below: int | None = None
        while len(hits) < limit:
            answer = await self.library.search(query, limit=max(RANKED, limit), below=below, seconds=PATIENCE)
            hits += answer.hits
            below = answer.next
            if below is None:
                break
        del hits[limit:]
        if self.arguments.json:
            write_json([_object(hit, query) for hit in hits])
        elif hits:
            write_table(("ID", "WHEN", "TITLE", "WHO", "TEXT"), [_row(hit) for hit in hits])
        else:
            write_line("No matches.")

    def _query(self) -> SearchQuery:
        text = self.arguments.text
        try:
            query = parse_search(text, cwd=Path.cwd())
        except SearchSyntaxError as error:
            mark = f"{' ' * error.start}{'^' * max(error.end - error.start, 1)}"
            raise CommandError(str(error), below=(text, mark)) from error
        if query.is_empty:
            raise CommandError('Give something to search for: a word, a "phrase", or a filter such as role:user.')
        return query

    async def _index_all(self) -> None:
        """Index older messages first, so that the search is complete."""
        said = -1
        while (progress := await self.library.index_older()).done < progress.total:
            percent = 100 * progress.done // progress.total
            if percent != said and os.isatty(sys.stderr.fileno()):
                said = percent
                sys.stderr.write(f"\rIndexing older messages (once): {percent} %")
                sys.stderr.flush()
        if said >= 0:
            sys.stderr.write("\r\033[K")


def _object(hit: SearchHit, query: SearchQuery) -> JsonObject:
    return {
        "session_id": hit.conversation_id,
        "title": hit.title,
        "cwd": str(hit.cwd),
        "archived": hit.archived,
        "left_behind": hit.left_behind,
        "seq": hit.seq,
        "role": hit.speaker.value,
        "tool_use_id": hit.call_id or None,
        "snippet": hit.snippet,
        "marks": [list(span) for span in occurrences(hit.snippet, query.words)],
        "created_at": utc_time(hit.created_at),
    }


def _row(hit: SearchHit) -> tuple[str, ...]:
    marks = [word for word, holds in (("archived", hit.archived), ("old branch", hit.left_behind)) if holds]
    title = f"{hit.title} ({', '.join(marks)})" if marks else hit.title
    return hit.conversation_id[:SHORT_ID], local_time(hit.created_at), title, hit.speaker.value, hit.snippet
