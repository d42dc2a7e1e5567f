"""Logins for servers: what may be said where, what wins, and that nothing secret is in an error."""

from typing import Any

import pytest

from jobtui.config.access import access_of_environment, access_of_table, accesses_of, holds_secrets, merged
from jobtui.model.specs import Access

SECRET = "s3cr3t-t0k3n"


@pytest.mark.parametrize(
    ("table", "access"),
    [
        ({}, Access()),
        ({"bearer": SECRET}, Access(bearer=SECRET)),
        ({"bearer": "$TOKEN"}, Access(bearer="of-the-environment")),
        ({"user": "ann", "password": "p:w"}, Access(user="ann", password="p:w")),
        ({"bearer_file": "/token", "ca_file": "/ca"}, Access(bearer_file="/token", ca_file="/ca")),
        ({"headers": {"X-Scope-OrgID": "t1", "X-Key": "$TOKEN"}},
         Access(headers=(("X-Scope-OrgID", "t1"), ("X-Key", "of-the-environment")))),
    ],
)  # fmt: skip
def test_a_table_says_how_a_server_wants_to_be_asked(table: object, access: Access) -> None:
    assert access_of_table(table, {"TOKEN": "of-the-environment"}) == access


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("x", "expected a table"),
        ({"baerer": SECRET}, 'unknown key "baerer", there is bearer'),
        ({"bearer": 7}, "bearer: expected a text"),
        ({"bearer": ""}, "bearer: expected a text"),
        ({"bearer": f"{SECRET}\r\nX: y"}, "bearer: has characters that cannot be sent"),
        ({"bearer": "$NOT_SET"}, "bearer: the environment variable NOT_SET is not set"),
        ({"bearer": SECRET, "user": "ann"}, "bearer and user are given, only one can be sent"),
        ({"user": "an:n", "password": SECRET}, "user: has a colon in it"),
        ({"headers": [SECRET]}, "headers: expected a table"),
        ({"headers": {"X-Key": f"{SECRET}\n"}}, "X-Key: has characters that cannot be sent"),
        ({"headers": {"X Key": SECRET}}, "a header has a name that is none"),
        ({"J_BASIC": SECRET}, "J_BASIC: expected USER:PASSWORD"),
        ({"J_HEADERS": SECRET}, "expected NAME: VALUE"),
        ({"J_BEARER": f"{SECRET} {SECRET}\x7f"}, "J_*: bearer: has characters"),
    ],
)
def test_a_table_or_variable_that_is_wrong_is_told_without_its_value(table: Any, words: str) -> None:
    of_variables = "J_" in str(table)
    with pytest.raises(ValueError, match=r".") as raised:
        access_of_environment("J", table) if of_variables else access_of_table(table, {})
    assert words in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("environ", "access"),
    [
        ({}, Access()),
        ({"JOBTUI_JAEGER_BEARER": SECRET}, Access(bearer=SECRET)),
        ({"JOBTUI_JAEGER_BASIC": f"ann:{SECRET}:x"}, Access(user="ann", password=f"{SECRET}:x")),
        ({"JOBTUI_JAEGER_HEADERS": "X-A: 1; X-B:2"}, Access(headers=(("X-A", "1"), ("X-B", "2")))),
        ({"JOBTUI_TEMPO_BEARER": SECRET}, Access()),
    ],
)
def test_variables_say_the_same(environ: dict[str, str], access: Access) -> None:
    assert access_of_environment("JOBTUI_JAEGER", environ) == access


def test_what_is_said_above_wins_and_one_login_is_sent() -> None:
    file = Access(bearer_file="/token", headers=(("X-A", "1"),), ca_file="/ca.pem")
    assert merged(file, Access(user="ann", password="p")) == Access(
        user="ann", password="p", headers=(("X-A", "1"),), ca_file="/ca.pem"
    )
    assert merged(file, Access(ca_file="/other.pem")) == file._replace(ca_file="/other.pem")


def test_tables_are_by_address_and_their_files_beside_the_configuration() -> None:
    tables = {"HTTPS://Jaeger.example.org/x/": {"bearer_file": "token", "ca_file": "/ca.pem"}}
    assert accesses_of(tables, "/etc/jobtui", {}) == {
        "https://Jaeger.example.org/x": Access(bearer_file="/etc/jobtui/token", ca_file="/ca.pem")
    }
    wrong: object
    for wrong in ("x", {"no address": {}}, {f"https://u:{SECRET}@host": {}}, {"https://h": {"x": 1}}):
        with pytest.raises(ValueError, match=r"^[^\n]+$") as raised:
            accesses_of(wrong, "/", {})
        assert SECRET not in str(raised.value)


def test_secrets_are_not_in_a_representation_and_their_place_is_known() -> None:
    assert SECRET not in repr(Access(SECRET, "", "", SECRET, (("X", SECRET),)))
    assert holds_secrets({"https://h": {"bearer": SECRET}})
    assert holds_secrets({"https://h": {"headers": {"X": SECRET}}})
    assert not holds_secrets({"https://h": {"bearer": "$X", "headers": {"X": "$Y"}, "bearer_file": "/f"}})
