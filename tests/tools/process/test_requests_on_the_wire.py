"""A request arrives as it was sent, whatever bytes are in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.process.zygote import wire
from tools.process.zygote.mount_places import MountPlace

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20), max_size=4)

WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
PLACES = st.lists(st.builds(MountPlace, WORD, WORD, WORD), max_size=4)


@given(argv=WORDS, environment=WORDS, writable=WORDS, places=PLACES, network=st.booleans(), filtered=st.booleans())
def test_what_is_encoded_is_decoded(
    argv: list[str],
    environment: list[str],
    writable: list[str],
    places: list[MountPlace],
    network: bool,
    filtered: bool,
) -> None:
    sent = wire.SupervisorRequest(
        wire.NAMESPACE,
        "/with space\nand line",
        argv,
        environment,
        network=network,
        filtered=filtered,
        places=places,
        writable=writable,
        secret=writable,
        shown=argv,
    )
    encoded = sent.encode()
    assert wire.LENGTH.unpack(encoded[: wire.LENGTH.size])[0] == len(encoded) - wire.LENGTH.size
    received = wire.decode(encoded[wire.LENGTH.size :])
    for name in wire.SupervisorRequest.__slots__:
        assert getattr(received, name) == getattr(sent, name)


def test_bytes_that_are_no_text_travel_unharmed() -> None:
    sent = wire.SupervisorRequest(wire.SUBREAPER, "/", ["a\udcffb"], [])
    assert wire.decode(sent.encode()[wire.LENGTH.size :]).argv == ("a\udcffb",)


def test_a_nul_cannot_travel() -> None:
    with pytest.raises(ValueError, match="null"):
        wire.SupervisorRequest(wire.SUBREAPER, "/", ["a\0b"], []).encode()
