"""References to documents: what code and documents name, and what of it exists.

A reference is the name of a document in capitals and ids in it (`SPEC BED-005, T-SM 9`), or the path of a file.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("phoenix_tui", "engine", "tools", "tests", "screenshots", "docs")
DOCUMENTS: Final = {"SPEC": "spec.md", "CONTRACT": "contract.md", "FAULTS": "faults.md", "SECURITY": "security.md"}
"""Names in references, and the documents below `docs` that they mean."""

_NAMED: Final = re.compile(rf"\b({'|'.join(DOCUMENTS)})(?:\.md)?[ \t]*\n?\s+(?=\S)")
_ABSENT: Final = re.compile(
    r"\b(?:SPIKE|LOOK|DESIGN|LIBRARIES|EXTEND|FOUND|HOUSE|LOCAL_MODEL|STYLE|PEERS|FEATURES)"
    r"(?:\.md|,? (?:section )?[A-Z]?\d)|\bARCHITECTURE(?:\.md)? (?:section )?\d"
)
"""Documents that were never in the repository, and numbers of sections, which change."""
_BARE: Final = re.compile(r"\b(?:(?:BED|UNI|CLAW|SDK|CARD|STM|DOM|DEC|REQ)-[A-Z0-9]+|T-[A-Z]{2,})\b")
"""Id of the specification, also without its name."""
_ITEM: Final = re.compile(
    r"(?:, | and | to |(?<=[A-Z]) )?([A-Z]+-[A-Z0-9]+\b|[A-Z]\d+\b|\d+(?:\.\d+)?(?:-\d+)?(?![\w.%]*\w))"
)
_HEADING: Final = re.compile(r"^#{1,6} (?:(T-[A-Z]+|[A-Z]+-[A-Z0-9]+|[A-Z]\d+|\d+(?:\.\d+)?)\b)?.*")
_ROW: Final = re.compile(r"\| ([A-Z]?\d+|[A-Z]+-\d+) \|")
_LINK: Final = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"`([\w./*-]+)`")
_FENCE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_PATH: Final = re.compile(r"\bdocs/[\w/-]+\.md\b")


def ids_of(text: str) -> set[str]:
    """The ids that a document defines: by its headings, and by the numbered rows of its tables.

    Rows below the heading of a test vector are its cases: `SPEC T-SM 9`.
    """
    found, vector = set[str](), ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            found.add(heading[1] or "")
            vector = heading[1] if heading[1] and heading[1].startswith("T-") else ""
        elif row := _ROW.match(line):
            found.add(f"{vector} {row[1]}".strip())
    return found - {""}


def references_in(text: str) -> Iterator[tuple[str, str]]:
    """Each document and id that a text names; the id is empty where none follows."""
    for named in _NAMED.finditer(text):
        items = list(_items(text, named.end()))
        yield from ((named[1], one) for item in items for one in item.ids)
        if not items:
            yield named[1], ""


def unresolved_in(text: str, known: dict[str, set[str]]) -> list[str]:
    """The references of a text that lead nowhere; `known` has the ids of each document."""
    lost = [f"{name} {item}".strip() for name, item in references_in(text) if item not in known[name]]
    lost += [match[0] for match in _ABSENT.finditer(text)]
    named = {item.end for named in _NAMED.finditer(text) for item in _items(text, named.end())}
    lost += [match[0] for match in _BARE.finditer(text) if match.end() not in named]
    return lost + [path for path in _PATH.findall(text) if not (ROOT / path).is_file()]


def words_of(source: str) -> str:
    """Comments and docstrings of a Python source, which may contain references; empty if it names no document."""
    if not any(pattern.search(source) for pattern in (_NAMED, _ABSENT, _PATH, _BARE)):
        return ""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return "\n".join(one.string for one in tokens if one.type == tokenize.COMMENT or one.string.startswith('"""'))


def lost_links(text: str, folder: Path) -> list[str]:
    """Relative links of a document in `folder` whose file or heading does not exist."""
    return [link for link in _LINK.findall(_FENCE.sub("", text)) if not _leads_somewhere(link, text, folder)]


def lost_files(text: str, files: set[str]) -> list[str]:
    """Files and folders of the repository that a document names and that do not exist.

    A name without its folder counts as that of any file that ends so; words in capitals stand for something.
    """
    names = [name for name in _CODE.findall(_FENCE.sub("", text)) if not re.search(r"[A-Z]{4,}(?!\w*\.md)", name)]
    return [name for name in names if not _is_there(name.rstrip("/"), files)]


def repository_files() -> set[str]:
    """Paths of all files of the repository's folders, from its top."""
    below = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)
    return {str(path.relative_to(ROOT)) for path in (*below, *ROOT.glob("*.*"), ROOT / "Makefile")}


def documents() -> list[Path]:
    """Every Markdown file of the repository."""
    return sorted((*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))))


def sources() -> list[Path]:
    """Every Python file of the repository."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def known_ids() -> dict[str, set[str]]:
    """The ids of each document."""
    return {name: ids_of((ROOT / "docs" / file).read_text("utf-8")) for name, file in DOCUMENTS.items()}


class _Item(NamedTuple):
    """One place of a list of ids: the ids it names, two for a range, and where it ends."""

    ids: tuple[str, ...]
    end: int


def _items(text: str, place: int) -> Iterator[_Item]:
    last = ""
    while item := _ITEM.match(text, place):
        word, place = item[1], item.end()
        if not word[0].isdigit():
            last = word
            yield _Item((word,), place)
        elif not last or last.startswith("T-"):
            yield _Item(tuple(f"{last} {number}".strip() for number in word.split("-")), place)
        else:
            return


def _leads_somewhere(link: str, text: str, folder: Path) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    name, _, anchor = link.partition("#")
    target = (folder / name).resolve()
    if not target.exists():
        return False
    if not anchor:
        return True
    return anchor in {_slug(heading) for heading in _headings(target.read_text("utf-8") if name else text)}


def _headings(text: str) -> list[str]:
    return re.findall(r"^#{1,6} (.*)$", _FENCE.sub("", text), re.MULTILINE)


def _slug(heading: str) -> str:
    """The anchor that a heading has on the usual hosts."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _is_there(name: str, files: set[str]) -> bool:
    if "*" in name:
        return not name.startswith(FOLDERS) or any(ROOT.glob(name))
    if name.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
        return name in files
    return not name.endswith(".py") or name in files or any(file.endswith(f"/{name}") for file in files)
