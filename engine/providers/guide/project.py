"""A description of a project from its file names and its description files."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePosixPath

import msgspec

from engine.providers.guide.dialogue import Answered, Dialogue
from engine.providers.guide.markdown import code
from engine.providers.guide.plan import test_command
from engine.providers.guide.results import FileCount, file_count, listed_files, plain_lines

SHOWN_FILES = 40
_KINDS = {
    ".py": "Python", ".js": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript", ".rs": "Rust", ".go": "Go",
    ".c": "C", ".h": "C", ".cpp": "C++", ".java": "Java", ".kt": "Kotlin", ".rb": "Ruby", ".php": "PHP",
    ".sh": "Shell", ".html": "HTML", ".css": "CSS", ".sql": "SQL", ".md": "Markdown", ".swift": "Swift",
}  # fmt: skip
_PROSE = re.compile(r"^[A-Za-z*_`\"'(].{20,}")


class _PackageJson(msgspec.Struct):
    name: str = ""
    description: str = ""


class _ReadArguments(msgspec.Struct):
    path: str = ""


def listing(answer: str, folder: str, glob: str) -> str:
    """The files of an answer of list_files, at most `SHOWN_FILES` of them."""
    files, count = listed_files(answer), file_count(answer)
    what = f" that match {code(glob)}" if glob else f" in {code(folder)}" if folder else " here"
    if not files:
        return f"No files{what}."
    rows = [f"- {code(name)}" for name in files[:SHOWN_FILES]]
    if len(files) > SHOWN_FILES:
        more = "more than " if count.at_least else ""
        rows.append(f"- … and {more}{count.number - SHOWN_FILES:,} more")
    return f"{count.words[:1].upper()}{count.words[1:]}{what}:\n\n" + "\n".join(rows)


def describe_project(dialogue: Dialogue) -> str:
    """A summary whose every line comes from a tool result of this turn."""
    answer = dialogue.rounds[0][0].text
    files = listed_files(answer)
    read = {_path(call): plain_lines(call.text) for call in dialogue.answered[1:] if not call.is_error}
    title, purpose = _identity(read)
    lines = [f"**{title}**" + (f": {purpose}" if purpose else "")] if title else [purpose] if purpose else []
    lines += ["", *_facts(files, file_count(answer))]
    if read:
        lines.append(f"- read for this: {', '.join(code(name) for name in read)}")
    return "\n".join(lines).strip() or "The folder is empty."


def _facts(files: tuple[str, ...], count: FileCount) -> list[str]:
    kinds = Counter(kind for name in files if (kind := _KINDS.get(PurePosixPath(name).suffix.casefold())))
    folders = Counter(PurePosixPath(name).parts[0] for name in files if "/" in name.rstrip("/"))
    facts = [f"- {count.words}"]
    part = f" of the first {count.named:,}" if count.named else ""
    if kinds:
        facts.append(f"- kinds{part}: " + ", ".join(f"{kind} {number}" for kind, number in kinds.most_common(5)))
    if folders:
        facts.append(
            f"- folders{part}: " + ", ".join(f"{code(name + '/')} {number}" for name, number in folders.most_common(8))
        )
    command = test_command(files)
    if command:
        facts.append(f"- tests: {code(command)}")
    return facts


def _identity(read: dict[str, list[str]]) -> tuple[str, str]:
    """Name and purpose from the manifest, else from the README."""
    for name in ("pyproject.toml", "Cargo.toml", "package.json", "go.mod"):
        if name in read:
            title, purpose = _manifest(name, "\n".join(read[name]))
            if title and purpose:
                return title, purpose
    readme = next((lines for name, lines in read.items() if name.startswith("README")), list[str]())
    heading = next((line.lstrip("# ").strip() for line in readme if line.startswith("#")), "")
    return heading, next((line.strip() for line in readme if _PROSE.match(line)), "")


def _manifest(name: str, text: str) -> tuple[str, str]:
    if name == "package.json":
        try:
            found = msgspec.json.decode(text.encode("utf-8", "replace"), type=_PackageJson)
        except (msgspec.MsgspecError, RecursionError):
            return "", ""
        return found.name, found.description
    title = re.search(r'^\s*name\s*=\s*"([^"]+)"', text, re.MULTILINE)
    purpose = re.search(r'^\s*description\s*=\s*"([^"]+)"', text, re.MULTILINE)
    return (title.group(1) if title else "", purpose.group(1) if purpose else "")


def _path(call: Answered) -> str:
    try:
        return msgspec.json.decode(call.input_json.encode("utf-8", "replace"), type=_ReadArguments).path
    except (msgspec.MsgspecError, RecursionError):
        return ""
