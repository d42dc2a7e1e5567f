import json
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobtui.model.secret_words import MASK
from jobtui.model.secrets import mask_document, mask_line, mask_text, masked_lines
from tests.offenders import each
from tests.rows import CAPTURES, ROWS, table

JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJib2IifQ.c2lnbmF0dXJlLXg_9"
AGENT_ID = "RBb6Vj4wc0GxISMpa9X5jHsjeB43mFmm"
TOKEN = "a8z0JysjwwpLRCx2lX9pENrSy0AD7cvp"

TABLES = table("secrets")
BELOW = TABLES["below"]
MASKED = [
    *(pair for own in TABLES["masked"].values() for pair in own.items()),
    # known by their form
    (
        "-----BEGIN PRIVATE KEY-----\nab\ncd\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n***-----END PRIVATE KEY-----",
    ),
    (f"sent {JWT} to h", "sent *** to h"),
    (f"git clone https://h x {'ghp_' + 'a1B2c3D4e5' * 4}", "git clone https://h x ***"),
    (f"x={'github_pat_' + 'a1_B2' * 6},", "x=***,"),
    ("id AKIAZ7QXLN2PWK4TVB3C used", "id *** used"),
    *(
        (f"sent {beginning + body} to h", "sent *** to h")
        for beginning, body in (
            *(("sk_" + "live_", "a1B2" * 6), ("SG" + ".", "a1B2" * 5 + "." + "c3D4" * 8)),
            *(("npm" + "_", "a1B2c3D4e5F6" * 3), ("pypi" + "-", "AgEIcHlwaS5vcmcC" * 4)),
            *(("hf" + "_", "aBcD" * 9), ("dckr_" + "pat_", "a1B2" * 7), ("hvs" + ".", "a1B2" * 7)),
            *(("sk-" + "ant-", "a1B2" * 7), ("AGE-SECRET" + "-KEY-1", "A1B2" * 14)),
            *(("GOCSPX" + "-", "a1B2" * 7), ("ya29" + ".", "a1B2" * 7), ("xapp" + "-", "1-A1B2" * 5)),
            ("hooks.slack" + ".com/services/", "T0A1/B0A1/" + "a1B2" * 6),
        )
    ),
]


@each(*MASKED)
def test_a_secret_is_masked(text: str, masked: str) -> None:
    mask_text(re.sub(r"\d", "8", text))  # a text of the same shape may have no secret
    assert mask_text(text) == masked
    assert mask_text(masked) == masked


@each(*TABLES["left"])
def test_text_that_is_not_secret_is_kept(text: str) -> None:
    assert mask_text(text) == text


def _agent_ids_and_tokens(text: str) -> set[str]:
    own = re.findall(r"""(?:agent_?id|token)\\*['"]?[=:] ?\\*['"]?([A-Za-z0-9]{32})\b""", text, re.IGNORECASE)
    return set(own) | set(re.findall(r"start \{'agent_id': '(\w{32})'", text))


def _capture_files() -> list[Path]:
    return [
        path for path in sorted(CAPTURES.rglob("*")) if path.is_file() and path.stat().st_size < 10_000_000
    ]


def test_no_secret_of_any_capture_survives() -> None:
    texts = {path: path.read_text(errors="replace") for path in _capture_files()}
    secrets = set().union(*map(_agent_ids_and_tokens, texts.values()))
    assert len(secrets) > 30
    any_secret = re.compile("|".join(sorted(secrets)))
    for path, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            assert not any_secret.search(mask_text(line)), f"{path}:{number}"


def test_secrets_torn_anywhere_are_masked_in_both_parts() -> None:
    head = "docker.py:483:_write srj-s-AbCd1234 "
    lines = (CAPTURES / "docker" / "container-srj-p-VUlhaMOD.log").read_text().split("\n")
    torn = [(line, secret) for line in lines for secret in sorted(_agent_ids_and_tokens(line))]
    assert torn
    for line, secret in torn:
        start = line.index(secret)
        for cut in range(start - 30, start + len(secret) - 12):
            shown = mask_text(head + line[:cut]) + mask_text(head + line[cut:])
            assert not any(secret[at : at + 12] in shown for at in range(len(secret) - 11)), (line, cut)


def test_op_ids_of_the_captures_survive() -> None:
    for path in _capture_files():
        for line in path.read_text(errors="replace").split("\n"):
            ids = re.findall(r"""(?:'|\\?")opId\\?(?:'|"): \\?(?:'|")(\w{32})""", line)
            assert all(op_id in mask_text(line) for op_id in ids), path


def test_documents_are_masked_by_key_at_any_depth() -> None:
    document = {
        **TABLES["document"]["given"],
        "none": None,
        3: "x",
        "secret": None,
        "list": [{"password": 123}, f"X_TOKEN={TOKEN}", ("a", 1.5, True)],
    }
    assert mask_document(document) == {
        **TABLES["document"]["masked"],
        "none": None,
        3: "x",
        "secret": None,
        "list": [{"password": MASK}, "X_TOKEN=***", ("a", 1.5, True)],
    }


def test_a_document_nested_too_deep_is_masked_from_there() -> None:
    document: object = "x"
    for _ in range(5000):
        document = [document]
    assert MASK in json.dumps(mask_document(document))


@pytest.mark.parametrize("piece", TABLES["repeated"])
def test_hostile_repetition_takes_linear_time(piece: str) -> None:
    # a quadratic pattern would take minutes here
    mask_text("token='" + piece * (100_000 // len(piece)))


_PIECES = st.sampled_from([*TABLES["pieces"], JWT, AGENT_ID])


@settings(deadline=None, max_examples=400)
@given(st.lists(_PIECES | st.text(max_size=3), max_size=14).map("".join))
@example("Cookie: =\\")
@example("mysql -p\x1b\x1f0")
@example("mysql -p&sidmysql -psid")
@example("://password:sid}sid")
@example("://password:sid,sid")
def test_masking_twice_changes_nothing_more(text: str) -> None:
    masked = mask_text(text)
    assert mask_text(masked) == masked


_VALUES = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=8, max_size=40)


@settings(deadline=None, max_examples=200)
@given(
    _VALUES.map(lambda value: f"Q7{value}Z9"), st.sampled_from(["X_TOKEN", "password", "apiKey", "a.secret"])
)
def test_no_value_survives_in_any_notation(value: str, key: str) -> None:
    found = {key: value, "n": 1}
    for text in (
        repr(found),
        json.dumps(found),
        json.dumps(json.dumps(found)),
        repr(repr(found)),
    ):
        assert value not in mask_text(text)
        assert value[:6] not in mask_text(text)
        assert "n" in mask_text(text)


@each(*ROWS["options of a list"])
def test_the_value_behind_an_option_of_a_list_is_masked(words: list[object]) -> None:
    document = {"key": "process.command_args", "value": {"arrayValue": {"values": words}}}
    masked = json.dumps(mask_document(document))
    assert "hunter2" not in masked
    assert json.dumps(words[0])[1:-1] in masked
    assert mask_document({"max_tokens": 4096, "args": ["-v", "a"]}) == {
        "max_tokens": 4096,
        "args": ["-v", "a"],
    }


@each(*product(BELOW["heads"], BELOW["texts"]))
def test_a_value_in_lines_below_its_key_is_masked(head: str, text: str) -> None:
    lines = [f"{head}{line}" for line in (*text.split("\n"), "other: 1", "all is well")]
    masked = [*masked_lines(lines)]
    assert not re.search("hunter2|aHVudGVyMg", "".join(masked))
    assert [*masked_lines(masked)] == masked
    assert (masked[0][: len(head)], masked[-2:]) == (head, lines[-2:])


def test_a_key_is_masked_up_to_where_it_ends_in_lines() -> None:
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    lines = ["echo", begin, "Proc-Type: 4,ENCRYPTED", "", "c2hvcnQ", end, "done"]
    assert [*masked_lines(lines)] == ["echo", begin, MASK, MASK, MASK, end, "done"]
    logged = [f"Nov 20 20:34:30 h a[1]: {word}" for word in (begin, "aB1" * 21, "c2hvcnQxMjM0NTY3OA=", end)]
    assert [*masked_lines(logged)] == [logged[0], *["Nov 20 20:34:30 h a[1]: ***"] * 2, logged[3]]
    assert mask_document(logged) == [*masked_lines(logged)]
    cut = ["echo", begin, "c2hvcnQ", "echo 'all is well'", "c2hvcnQ"]
    assert [*masked_lines(cut)] == ["echo", begin, MASK, *cut[3:]], "a key that was cut off hides no more"


@each(*ROWS["ends of a key"])
def test_a_line_that_may_end_a_key_is_masked(line: str, is_masked: bool) -> None:
    masked = mask_line(line)
    assert ("wJ4k" not in masked) if is_masked else masked == line
    assert mask_line(masked) == masked
