"""Credentials planted in every form are removed; ordinary text stays; a cut leaves no half of a key."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.redaction import BLOT, MARGIN, redact, redact_end, redact_start, without_keys

VALUE = 'p4ss"w\\rd-ünusual'
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabcdef\n-----END RSA PRIVATE KEY-----"
PLANTED = [
    "sk-ant-api03-abcdefghijklmnop",
    "sk-proj-abcdefghijklmnop_1234",
    "gsk_abcdefghijklmnop",
    "xai-abcdefghijklmnop",
    "hf_abcdefghijklmnop",
    "ghp_abcdefghijklmnop1234",
    "github_pat_11ABCDEFG0abcdefghij",
    "glpat-abcdefghijklmnop",
    "xoxb-1234567890-abcdefghij",
    "AKIAABCDEFGHIJKLMNOP",
    "AIzaSyabcdefghijklmnopqrstuvwxyz01234",
    "ya29.abcdefghijklmnop",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
]


@pytest.mark.parametrize("key", PLANTED)
@pytest.mark.parametrize("around", ["{}", "key={}", '{{"a": "{}"}}', "({})", "x {} y", "Authorization: Bearer {}"])
def test_a_key_of_a_known_shape_is_removed_wherever_it_is(key: str, around: str) -> None:
    text = redact(around.format(key))
    assert key not in text
    assert key[8:] not in text
    assert BLOT in text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        ("authorization: Token abcdef123", "abcdef123"),
        ('{"x-api-key": "plain-value-1"}', "plain-value-1"),
        (json.dumps(json.dumps({"api_key": "plain-value-2"})), "plain-value-2"),
        ("Cookie: session=abcdef", "session=abcdef"),
        ("password = hunter22", "hunter22"),
        ("https://user:s3cret@example.com/v1", "s3cret"),
        (PEM, "MIIEow"),
        (PEM[:60], "MIIEow"),
        (json.dumps(PEM), "MIIEow"),
    ],
)
def test_credentials_in_headers_addresses_and_blocks_are_removed(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "form", [VALUE, json.dumps(VALUE), json.dumps(VALUE, ensure_ascii=False), base64.b64encode(VALUE.encode()).decode()]
)
def test_a_configured_key_is_removed_whatever_it_looks_like(form: str) -> None:
    text = redact(f"before {form} behind", (VALUE, "short"))
    assert form.strip('"') not in text
    assert "before" in text
    assert "behind" in text


def test_bytes_are_replaced_by_their_number() -> None:
    encoded = base64.b64encode(bytes(range(256)) * 30).decode()
    assert redact(f'"data:image/png;base64,{encoded}"') == '"[image, 7,680 bytes]"'
    assert redact(f'{{"data": "{encoded}"}}') == '{"data": "[7,680 bytes]"}'


@pytest.mark.parametrize(
    "text", ["a risk-averse task-list", "the token count is 5", "sk-1", "https://example.com/a@b", "x" * 400, ""]
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text, ("short", "")) == text


def test_notes_keep_settings_of_a_program() -> None:
    assert without_keys('password = read("x"); sk-abcdefghijklm') == f'password = read("x"); {BLOT}'


@given(st.integers(0, 3 * MARGIN), st.integers(0, 2 * MARGIN))
def test_no_cut_leaves_a_half_of_a_key(place: int, most: int) -> None:
    key = "sk-ant-" + "K" * 60
    text = f"{'a ' * (place // 2)}{key} end"
    assert "KKKKKK" not in redact_start(text, most, ())
    assert "KKKKKK" not in redact_end(f"{text}\nrest"[max(place + 10, 0) :])


def test_redacting_takes_time_in_proportion_to_the_text() -> None:
    for evil in ("authorization:" * 40_000, "://" * 100_000, "eyJ" * 150_000, "-----BEGIN PRIVATE KEY-----" * 15_000):
        assert len(redact(evil)) <= 2 * len(evil)
