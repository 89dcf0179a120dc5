"""The tool list_files: entries under a folder that no ignore file excludes."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.contract import JsonObject, ToolClass, ToolContext, ToolOutput, ToolRequest, ToolSpec
from tools.failure import ToolFailure, explain, failed
from tools.files.location import admit, resolve, shown
from tools.files.walking import MOST_WALKED, WalkedFiles, matcher, walk

MOST_FILES = 1000

_SCHEMA = object_schema({
    "path": {"type": "string", "description": "The folder; the working directory if not given."},
    "glob": {
        "type": "string",
        "description": "Only these files: *.py looks at names, src/**/*.py at paths under the folder.",
    },
    "ignored": {"type": "boolean", "description": "Also what .gitignore and .ignore exclude."},
})
_SPEC = ToolSpec(
    "list_files",
    f"List the files under a folder, sorted, at most {MOST_FILES:,}. Paths are relative to the working directory. "
    "An odd name is shown as $'…'; give it back to other tools in the same form.",
    _SCHEMA,
    ToolClass.READ,
)


class ListFilesInput(Struct, frozen=True):
    """Input of list_files."""

    path: str
    glob: str
    ignored: bool

    @classmethod
    def parse(cls, args: JsonObject) -> ListFilesInput:
        """Read the arguments.

        Raises:
            ToolInputError: they are invalid.
        """
        fields = Arguments(args, ("path", "glob", "ignored"))
        wanted = cls(fields.text("path", "."), fields.text("glob", ""), fields.flag("ignored"))
        matcher(wanted.glob)
        return wanted


class ListFiles(Struct, frozen=True):
    """The tool."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the folder and the pattern."""
        wanted = ListFilesInput.parse(args)
        path = await asyncio.to_thread(resolve, wanted.path, working_dir)
        name = shown(path, working_dir)
        return ToolRequest(summary=f"{wanted.glob} in {name}" if wanted.glob else name, paths=(path,))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """List them."""
        wanted = ListFilesInput.parse(args)
        try:
            return await asyncio.to_thread(_list, wanted, context)
        except ToolFailure as failure:
            return failed(str(failure))
        except OSError as error:
            return failed(explain(error, wanted.path))


def _list(wanted: ListFilesInput, context: ToolContext) -> ToolOutput:
    location = admit(wanted.path, context)
    if not stat.S_ISDIR(location.path.stat(follow_symlinks=False).st_mode):
        raise ToolFailure(f"{location.shown} is a file, not a folder; use read_file.")
    walked = walk(location.path, glob=wanted.glob, ignored=wanted.ignored, without=context.kept_out)
    return _output(walked, wanted, context)


def _output(walked: WalkedFiles, wanted: ListFilesInput, context: ToolContext) -> ToolOutput:
    if not walked.files:
        rest = "" if wanted.ignored else " Files that .gitignore excludes are listed with ignored: true."
        return ToolOutput(f"[no files{f' match {wanted.glob}' if wanted.glob else ''}]{rest}")
    lines = [shown(Path(path), context.working_dir) for path in walked.files[:MOST_FILES]]
    total = len(walked.files)
    if total > MOST_FILES:
        count = f"{total:,}" if walked.complete else f"more than {MOST_WALKED:,}"
        lines.append(f"[{MOST_FILES:,} of {count} files shown; narrow it with path or glob]")
    return ToolOutput("\n".join(lines), truncated=total > MOST_FILES)
