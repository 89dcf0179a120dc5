"""Finding a path by a few letters: the quick search gives what ranking every path would give."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from phoenix_tui.text.fuzzy import Corpus, places, rank, with_folders

NAMES = (
    "src/app/main.py",
    "src/app/completion_popup.py",
    "src/domain.py",
    "README.md",
    "tests/test_main.py",
    "src/App.tsx",
)
PARTS = st.text("abcAB_.", min_size=1, max_size=5)
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
FILES = st.lists(PATHS, max_size=40, unique=True)


def names(found: str, files: tuple[str, ...] = NAMES) -> list[str]:
    return [one.name for one in Corpus(with_folders(files)).search(found, 10)]


def test_a_name_that_begins_so_is_ahead_of_one_that_contains_it_and_that_of_a_folder() -> None:
    assert names("main") == ["src/app/main.py", "tests/test_main.py", "src/domain.py"]
    assert names("app") == ["src/app/", "src/App.tsx", "src/app/main.py", "src/app/completion_popup.py"]


def test_initials_and_scattered_letters_find_a_file() -> None:
    assert names("cp")[0] == "src/app/completion_popup.py"
    assert names("rdm") == ["README.md", "src/domain.py"]
    assert names("s/comp") == ["src/app/completion_popup.py"]
    assert names("xyz") == []


def test_without_letters_what_is_nearest_to_the_root_comes_first() -> None:
    assert names("")[:3] == ["README.md", "src/", "tests/"]


def test_a_folder_stands_once_whatever_is_in_it() -> None:
    assert with_folders(["a/b/c", "a/b/d", "e"]) == ["a/", "a/b/", "a/b/c", "a/b/d", "e"]


@settings(max_examples=150, deadline=None)
@given(files=FILES, query=st.text("abcA_/.", min_size=1, max_size=5), most=st.integers(1, 12))
def test_the_search_gives_the_best_of_all_ranks(files: list[str], query: str, most: int) -> None:
    corpus = Corpus(with_folders(files))
    for end in range(1, len(query) + 1):  # as it is typed: each search looks in what the one before it left
        wanted = query[:end].lower()
        ranked = sorted(found for name in corpus.names if (found := rank(wanted, name)) is not None)
        assert [one.name for one in corpus.search(query[:end], most)] == [found[-1] for found in ranked[:most]]


@settings(max_examples=150, deadline=None)
@given(name=PATHS, query=st.text("abcA_/.", min_size=1, max_size=5))
def test_the_marked_places_hold_the_letters_in_order(name: str, query: str) -> None:
    wanted, marked = query.lower(), places(query.lower(), name)
    if rank(wanted, name) is None:
        rest = iter(name.lower())
        assert not all(letter in rest for letter in wanted)
    else:
        assert "".join(name[place].lower() for place in marked) == wanted
        assert sorted(set(marked)) == list(marked)
