"""Variables of the environment by which TLS and proxies are found, and what is wrong with them, in one sentence each.

The libraries below raise whatever comes out: FileNotFoundError without a name, "Unknown scheme for proxy URL", an empty
`ssl.SSLError`. None of it says which variable to look at, so each is tried here.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tools.clean import clean_line

PROXIES: Final = ("https_proxy", "http_proxy", "all_proxy")
SCHEMES: Final = ("http", "https", "socks5", "socks5h")
"""Kinds of proxies that the HTTP library speaks to."""
DATES: Final = frozenset({9, 10})
"""Codes of OpenSSL for a certificate that is not valid yet, or no more."""
NAMES: Final = frozenset({62, 63, 64})
"""Codes of OpenSSL for a certificate of another host."""
LONGEST: Final = 200
"""Characters of a value in a sentence."""


def network_troubles(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each variable with which no connection can be made; reads and writes the files they name."""
    return [*tls_troubles(environment), *_proxy_troubles(environment)]


def tls_troubles(environment: Mapping[str, str]) -> Iterator[str]:
    """The same for the variables of TLS alone."""
    for name, check in (("SSL_CERT_FILE", _certificates), ("SSL_CERT_DIR", _folder), ("SSLKEYLOGFILE", _key_log)):
        value = environment.get(name, "")
        if value and (problem := check(value)):
            yield f"{name} names {_show(value)}, {problem}; set it to another one, or unset it."


def proxy_of(scheme: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Name and value of the variable that chooses the proxy of a scheme; empty without one."""
    for name in (f"{scheme}_proxy", "all_proxy"):
        for spelled in (name, name.upper()):
            if value := environment.get(spelled, ""):
                return spelled, value
    return "", ""


def without_connections(error: Exception, environment: Mapping[str, str]) -> str:
    """Reason why a client could not be made: the variables to blame, or the words of the error."""
    found = network_troubles(environment)
    return " ".join(found) or f"No connection can be made ({_show(str(error)) or 'no reason given'})."


def describe_untrusted_certificate(
    host: str, error: ssl.SSLCertVerificationError, environment: Mapping[str, str]
) -> str:
    """The sentence about a certificate that is refused; waiting changes nothing about it."""
    why = clean_line(error.verify_message or "no reason given")
    found = list(tls_troubles(environment))
    said = f"The certificate of {host} is not trusted ({why})."
    if error.verify_code in DATES:
        return f"{said} Check the date of this computer."
    if error.verify_code in NAMES:
        return f"{said} Check the address."
    named = environment.get("SSL_CERT_FILE", "")
    fix = f"SSL_CERT_FILE is {_show(named)}: add" if named else "Set SSL_CERT_FILE to a file with"
    return " ".join((said, *(found or [f"{fix} the certificate of its issuer, as of a proxy that opens connections."])))


def describe_proxy_refusal(scheme: str, said: str, environment: Mapping[str, str]) -> tuple[str, bool]:
    """The sentence about a proxy that lets nothing through, and whether a later try may succeed."""
    name, value = proxy_of(scheme, environment)
    where, status = f"The proxy in {name}" if name else "The proxy", said[:3]
    address = urlsplit(value if "://" in value else f"http://{value}").netloc.rpartition("@")[2]
    if status == "407" or "auth" in said.lower() or "password" in said.lower():
        written = f"{name}=http://USER:PASSWORD@{_show(address)}" if name else "http://USER:PASSWORD@HOST:PORT"
        return f"{where} wants a user name and a password it knows: {written}.", False
    if status.isdigit() and status.startswith("4") and status not in {"408", "429"}:
        return f"{where} refuses the connection ({_show(said)}); ask who runs it, or add the host to NO_PROXY.", False
    return f"{where} fails ({_show(said) or 'no reason given'})", True


def _proxy_troubles(environment: Mapping[str, str]) -> Iterator[str]:
    for name in PROXIES:
        for spelled in (name, name.upper()):
            if (value := environment.get(spelled, "")) and (problem := _proxy(value)):
                yield f"{spelled} is {problem}; write it as http://HOST:PORT or socks5://HOST:PORT, or unset it."


def _proxy(value: str) -> str:
    """Fault of the address of a proxy; empty without one. Names and passwords in it are not shown."""
    try:
        address = urlsplit(value if "://" in value else f"http://{value}")
        port = address.port
    except ValueError:
        return "no address of a proxy"
    if not address.scheme:
        return "no address of a proxy"
    if address.scheme.lower() not in SCHEMES:
        return f"the address of a proxy that speaks {_show(address.scheme)}, which Phoenix does not"
    if not address.hostname or any(char.isspace() or not char.isprintable() for char in value) or port == 0:
        return "no address of a proxy"
    return ""


def _certificates(value: str) -> str:
    """Fault of a file of certificates."""
    try:
        Path(value).read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=value)
    except ssl.SSLError:
        return "which holds no certificate"
    except OSError as error:
        return _why(error)
    return ""


def _folder(value: str) -> str:
    path = Path(value)
    try:
        if path.exists() and not path.is_dir():
            return "which is no folder"
        if path.exists():
            next(path.iterdir(), None)
    except OSError as error:
        return _why(error)
    return ""


def _key_log(value: str) -> str:
    """Fault of the file into which keys of connections are written."""
    path = Path(value)
    if path.is_dir():
        return "which is a folder"
    if not path.parent.is_dir():
        return "which is in no folder"
    place = path if path.exists() else path.parent
    return "" if os.access(place, os.W_OK) else "which cannot be written"


def _why(error: OSError) -> str:
    return f"which cannot be read ({error.strerror or error})"


def _show(value: str) -> str:
    return clean_line(value)[:LONGEST]
