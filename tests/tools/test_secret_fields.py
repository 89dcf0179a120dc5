"""Values hidden from repr: a key in a Struct appears neither there nor in other output."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct
from rich.pretty import pretty_repr

from tools.known_secrets import SecretFields


class Account(SecretFields, Struct, frozen=True):
    HIDDEN: ClassVar[frozenset[str]] = frozenset({"key"})

    name: str
    key: str = ""


class Holder(Struct):
    account: Account


def test_a_hidden_field_stands_in_no_repr() -> None:
    account = Account("mine", "sk-secret")
    assert repr(account) == "Account(name='mine')"
    assert repr(Holder(account)) == "Holder(account=Account(name='mine'))"


def test_what_prints_values_prettily_does_not_see_it_either() -> None:
    assert pretty_repr(Holder(Account("mine", "sk-secret"))) == "Holder(account=Account(name='mine'))"


def test_two_of_them_are_equal_by_all_their_values() -> None:
    assert Account("mine", "one") == Account("mine", "one")
    assert Account("mine", "one") != Account("mine", "two")
