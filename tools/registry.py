"""The list of tools an agent is given, in the order of SPEC DOM-03."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tools.ask_user import AskUser
from tools.bash import Bash
from tools.contract import ImageReader, ProcessRunner, Tool
from tools.exit_plan import ExitPlan
from tools.files.writing import ReadLedger, TextFormatter
from tools.job_board import JobBoard
from tools.job_tools import JobKill, JobOutput
from tools.list_files import ListFiles
from tools.patch import Patch
from tools.read_file import ReadFile
from tools.read_image import ReadImage
from tools.search import Search
from tools.think import Think
from tools.todo_write import TodoWrite
from tools.web_fetch import WebFetch
from tools.web_search import SearchService, WebSearch
from tools.write_file import WriteFile


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
