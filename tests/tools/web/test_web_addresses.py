"""Addresses that web tools may ask, however they are written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.web_pages import NamedReach
from tools.arguments import ToolFailure
from tools.contract import ToolInputError
from tools.web.fetching import PublicReach, WebAddress, admit_address, parse_url
from tools.web.public_addresses import is_public


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://example.com", "https://example.com/"),
        ("https://Example.COM./a?b=c#d", "https://example.com/a?b=c"),
        ("http://example.com:8080/a", "http://example.com:8080/a"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://[2606:4700::1111]/x", "https://[2606:4700::1111]/x"),
    ],
)
def test_an_address_is_normalized_and_upgraded(text: str, url: str) -> None:
    assert parse_url(text).url == url


@pytest.mark.parametrize(
    "text",
    [
        *("example.com", "file:///etc/passwd", "ftp://example.com/", "https://", "javascript:alert(1)", ""),
        *("https://localhost/", "https://intranet/", "https://printer.local/", "https://metadata.google.internal/"),
        *("http://2130706433/", "http://0x7f000001/", "https://user:key@example.com/", "https://user@example.com/"),
        *("https://example.com:99999/", "https://[::1/", "https://exa mple.com/", "https://example.com/\r\nHost: evil"),
        "https://example.com/" + "a" * 2_000,
    ],
)
def test_what_is_no_public_web_address_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ToolInputError, match=r"\.$"):
        parse_url(text)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
        *(
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a00:1::",
        ),
        *("fec0::1", "feff::1", "64:ff9b:1::1", "2001:2::1", "3fff::1", "5f00::1", "100::1", "::1.2.3.4", "4000::1"),
        *("192.0.0.9", "192.88.99.1", "::ffff:0:1.2.3.4", "2001:0:102:304::f5ff:fffe", "2606:4700::5efe:a00:1"),
        *("2606:4700::200:5efe:7f00:1", "2002:c058:6301::1"),
        *("no address", "", "1.2.3"),
    ],
)
def test_private_and_special_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


NEAR = """
ip link set lo up && ip link add v0 type veth peer name v1 && ip addr add 9.9.9.9/24 dev v0
ip -6 addr add 2606:4700:1::5/64 dev v0 nodad; ip link set v0 up && ip link set v1 up
ip route add default via 9.9.9.1; ip route add 20.0.0.0/8 dev v0; ip -6 route add default via 2606:4700:1::1
exec "$@"
"""
ASK = "import sys; sys.path.append(sys.argv[1]); from tools.web.public_addresses import is_outside as f; "
ASK += "print([one for one in sys.argv[2:] if f(one)])"


def test_public_addresses_of_this_machine_and_of_its_network_are_not_outside() -> None:
    far = ["9.9.8.8", "20.1.1.1", "2606:4700:2::1"]
    near = ["9.9.9.9", "9.9.9.77", "::ffff:9.9.9.77", "64:ff9b::909:909", "2606:4700:1::5", "2606:4700:1::77"]
    inside = ["unshare", "-rn", "sh", "-e", "-c", NEAR, "sh"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no network of its own can be made here")
    ask = [sys.executable, "-c", ASK, str(Path(__file__).parents[3])]
    done = subprocess.run([*inside, *ask, *near, *far], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{far}\n", "")
    assert all(map(is_public, near))


@pytest.mark.parametrize("host", ["127.1", "0177.0.0.1", "0x7f.0.0.1", "127.0.0.1"])
async def test_other_spellings_of_this_machine_are_refused_once_resolved(host: str) -> None:
    with pytest.raises((ToolFailure, ToolInputError)):
        await admit_address(parse_url(f"https://{host}/"), PublicReach())


async def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    reach = NamedReach({"mixed.test": ["127.0.0.1", "10.0.0.1"]})
    with pytest.raises(ToolFailure, match="private network"):
        await admit_address(WebAddress("https://mixed.test/", "https", "mixed.test", 443), reach)


async def test_a_host_without_an_address_is_named() -> None:
    reach = NamedReach({"nowhere.test": []})
    with pytest.raises(ToolFailure, match=r"The host nowhere\.test is unknown"):
        await admit_address(parse_url("https://nowhere.test/"), reach)


@given(st.text(max_size=80))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for candidate in (text, f"https://{text}", f"http://a.example/{text}"):
        with suppress(ToolInputError):
            assert parse_url(candidate).host.isascii()
