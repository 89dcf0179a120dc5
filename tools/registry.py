"""The list of tools an agent is given, in the order of SPEC DOM-03."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tools.bash import Bash, JobBoard, JobKill, JobOutput
from tools.contract import ImageReader, ProcessRunner, Tool
from tools.file_tools import Patch, ReadFile, ReadImage, WriteFile
from tools.files.writing import ReadLedger, TextFormatter
from tools.planning import AskUser, ExitPlan, Think, TodoWrite
from tools.search import ListFiles, Search
from tools.web_pages import SearchService, WebFetch, WebSearch


class ToolDependencies(Struct, frozen=True):
    """Services that the tools need; one ledger serves all conversations of a process."""

    runner: ProcessRunner
    jobs: JobBoard
    images: ImageReader
    ledger: ReadLedger
    spill_folder: Path
    """Folder of outputs too long for a result; read_file and search may look there."""
    search: SearchService | None = None
    """The service that searches the web; None: the provider of a model, where it can."""
    formatter: TextFormatter | None = None
    """Formatters of the user; None: there are none."""


def build_tools(dependencies: ToolDependencies) -> dict[str, Tool]:
    """Every tool by its name."""
    spills = (dependencies.spill_folder,)
    tools: tuple[Tool, ...] = (
        Bash(dependencies.jobs, dependencies.spill_folder),
        JobOutput(dependencies.jobs),
        JobKill(dependencies.jobs),
        ReadFile(dependencies.ledger, spills),
        ListFiles(),
        Search(dependencies.runner, spills),
        WriteFile(dependencies.ledger, dependencies.formatter),
        Patch(dependencies.ledger, dependencies.formatter),
        ReadImage(dependencies.images),
        Think(),
        TodoWrite(),
        ExitPlan(),
        AskUser(),
        WebFetch(dependencies.runner, dependencies.images),
        WebSearch(dependencies.search),
    )
    return {tool.spec.name: tool for tool in tools}
