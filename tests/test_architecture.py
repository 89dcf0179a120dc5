"""Documents lead to headings and files that are there; every file of the source says in a sentence what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.index import PACKAGES, lines_of, main, said_by
from tests.structure import circles
from tests.support.references import ROOT, documents, lost_files, lost_links, repository_files

DOCUMENTS = {str(path.relative_to(ROOT)): path for path in documents()}


def test_every_link_of_a_document_leads_somewhere() -> None:
    found = {name: lost_links(path.read_text("utf-8"), path.parent) for name, path in DOCUMENTS.items()}
    assert {name: lost for name, lost in found.items() if lost} == {}


def test_every_file_and_folder_that_a_document_names_is_there() -> None:
    files = repository_files()
    places = files | {str(parent) for file in files for parent in Path(file).parents}
    found = {name: lost_files(path.read_text("utf-8"), places) for name, path in DOCUMENTS.items()}
    assert {name: lost for name, lost in found.items() if lost} == {}


def test_every_folder_and_file_of_the_source_has_a_line_in_the_index() -> None:
    silent = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if not said_by(path)]
    assert silent == []
    files = [path.name for path in (ROOT / "engine" / "machine").glob("*.py") if path.name != "__init__.py"]
    listed = [line for line in lines_of("engine/machine") if line.startswith("  ") and line[2] != " "]
    assert [line.strip().partition(":")[0] for line in listed] == sorted(files)


def test_every_test_that_make_quick_names_is_there_once() -> None:
    """Pytest would say it too, but `make test` does not read that list."""
    named = (ROOT / "tests" / "quick.txt").read_text("utf-8").split()
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert sorted(set(named)) == sorted(named)


def test_the_index_of_a_folder_that_is_none_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engine/nothing"]) == 2
    assert capsys.readouterr().err == "engine/nothing is not a folder of this repository.\n"


def test_no_modules_import_each_other() -> None:
    """Neither at the top of a file nor in a function nor for type checkers alone."""
    assert circles() == []
