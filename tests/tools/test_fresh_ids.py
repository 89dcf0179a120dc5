"""Fresh ids are UUID4s, and no two threads or processes ever get the same one."""

from __future__ import annotations

import os
import threading
import uuid

from tools.fresh_ids import AT_ONCE, fresh_id


def test_each_id_is_a_uuid4_in_its_usual_form() -> None:
    found = [fresh_id() for _ in range(3 * AT_ONCE)]
    assert [str(uuid.UUID(one)) for one in found] == found
    assert {(uuid.UUID(one).version, uuid.UUID(one).variant) for one in found} == {(4, uuid.RFC_4122)}
    assert len(set(found)) == len(found)


def test_threads_share_no_id() -> None:
    found: list[list[str]] = [[] for _ in range(8)]

    def take(ids: list[str]) -> None:
        ids.extend(fresh_id() for _ in range(5_000))

    threads = [threading.Thread(target=take, args=(ids,)) for ids in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for ids in found for one in ids}) == 40_000


def test_a_forked_process_gets_ids_of_its_own() -> None:
    fresh_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, " ".join(fresh_id() for _ in range(AT_ONCE)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        theirs = set(file.read().split())
    os.waitpid(child, 0)
    assert len(theirs) == AT_ONCE
    assert theirs.isdisjoint(fresh_id() for _ in range(2 * AT_ONCE))
