import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.model.secrets import MASK, is_secret_key, mask_document, mask_text

CAPTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
AGENT_ID = "RBb6Vj4wc0GxISMpa9X5jHsjeB43mFmm"
TOKEN = "a8z0JysjwwpLRCx2lX9pENrSy0AD7cvp"
OP_ID = "khsKpBCrpfCnFYD1h0DppNggyzUpVfKs"

MASKED = [
    # python dict reprs
    (f"start {{'agent_id': '{AGENT_ID}', 'x': 1}}", "start {'agent_id': 'RBb6…', 'x': 1}"),
    (f"msg={{'agentId': '{AGENT_ID}', 'opId': '{OP_ID}'}}", f"msg={{'agentId': 'RBb6…', 'opId': '{OP_ID}'}}"),
    (f"{{'file_server_token': '{TOKEN}', 'uri': 'x'}}", "{'file_server_token': '***', 'uri': 'x'}"),
    (f"{{b'token': b'{TOKEN}'}}", "{b'token': b'***'}"),
    ("\u0130\u0130 {'token': 'abc'}", "\u0130\u0130 {'token': '***'}"),
    ("{'otp': 123456, 'n': 1}", "{'otp': ***, 'n': 1}"),
    ("{'otp': 123456}", "{'otp': ***}"),
    ("""{'password': "it's", 'n': 1}""", """{'password': "***", 'n': 1}"""),
    (r"{'password': 'it\'s \\', 'n': 1}", "{'password': '***', 'n': 1}"),
    ("{'credentials': {'user': 'a)', 'key': ['b', 2]}, 'n': 1}", "{'credentials': ***, 'n': 1}"),
    ("{'credentials': {'user': 'a', 'key': ['b'", "{'credentials': ***"),
    ("token=[1]ab, n=1", "token=***, n=1"),
    # JSON, also inside JSON inside JSON
    (f'{{"token": "{TOKEN}", "n": 1}}', '{"token": "***", "n": 1}'),
    (r"{\"token\": \"a\\\"b\", \"n\": 1}", r"{\"token\": \"***\", \"n\": 1}"),
    (r"{\\\"token\\\": \\\"ab\\\", \\\"n\\\": 1}", r"{\\\"token\\\": \\\"***\\\", \\\"n\\\": 1}"),
    # shell
    (f"export X_TOKEN='{TOKEN}'", "export X_TOKEN='***'"),
    (f"export X_AGENT_ID='{AGENT_ID}'", "export X_AGENT_ID='RBb6…'"),
    (f"X_JOB_AGENT_AGENT_ID={AGENT_ID}", "X_JOB_AGENT_AGENT_ID=RBb6…"),
    (f"X_TOKEN={TOKEN} Y=1", "X_TOKEN=*** Y=1"),
    (rf"env X_TOKEN={TOKEN}\nY=1\n", r"env X_TOKEN=***\nY=1\n"),
    (rf"export X_TOKEN='{TOKEN}'\nexport Y='1'", r"export X_TOKEN='***'\nexport Y='1'"),
    (r"b'export X_TOKEN=\'ab\'\nexport Y=\'1\''", r"b'export X_TOKEN=\'***\'\nexport Y=\'1\''"),
    (r"X_SECRET='it'\''s it'; ls", "X_SECRET='***'; ls"),
    ("X_PASSWORD=a,b)c d", "X_PASSWORD=*** d"),
    ("login --password hunter2 -v", "login --password *** -v"),
    ("login --api-key=abc -v", "login --api-key=*** -v"),
    ("['login', '--token', 'abc', '-v']", "['login', '--token', '***', '-v']"),
    ("['X_TOKEN=abc', 'Y=1']", "['X_TOKEN=***', 'Y=1']"),
    ("password = 'a b' # why", "password = '***' # why"),
    ("os.environ['X_TOKEN'] = 'abc'", "os.environ['X_TOKEN'] = '***'"),
    ("_Login(user=me, passwd=abc, host=h)", "_Login(user=me, passwd=***, host=h)"),
    # headers
    ("Authorization: Bearer a.b.c", "Authorization: ***"),
    ("curl -H 'Authorization: Bearer a.b' url", "curl -H 'Authorization: ***' url"),
    ("('Authorization', 'Basic YWJj')", "('Authorization', '***')"),
    ('Authorization: Digest username="u", response="r"', "Authorization: ***"),
    ('{"Authorization": ["Bearer a.b"], "n": 1}', '{"Authorization": ***, "n": 1}'),
    ("X-Api-Key: abc", "X-Api-Key: ***"),
    ("zation: Bearer abcdefghijklmnop", "zation: Bearer ***"),
    # addresses
    ("get https://me:p:w@host/x", "get https://me:***@host/x"),
    ("GET /x?token=abc&n=1 HTTP/1.1", "GET /x?token=***&n=1 HTTP/1.1"),
    ("GET /x?n=1%26token%3Dabc", "GET /x?n=1%26token%3D***"),
    # paths
    (f"agent_exec_dir=/u/agent-local/{AGENT_ID}", "agent_exec_dir=/u/agent-local/RBb6…"),
    (f"run_dir=/u/agent-local/{AGENT_ID}))", "run_dir=/u/agent-local/RBb6…))"),
    (f"/u/agent-local/{AGENT_ID}/job_agent.pid", "/u/agent-local/RBb6…/job_agent.pid"),
    (f'{{"agent": "{AGENT_ID}", "n": 1}}', '{"agent": "RBb6…", "n": 1}'),
    ("token: Bearer abc.def", "token: ***"),
    ('{"token":\n  "abc"}', '{"token":\n  "***"}'),
    (r"X_TOKEN=a\\b next", "X_TOKEN=*** next"),
    # torn in two, of which this is the second part
    (f"srj-s-OAxT2b3c {TOKEN[7:]}'", "srj-s-OAxT2b3c ***'"),
    (
        f"docker.py:483:_write srj-p-OAxT2b3c {TOKEN}', 'x': 1",
        "docker.py:483:_write srj-p-OAxT2b3c ***', 'x': 1",
    ),
    (f"srj-s-OAxT2b3c KEN='{TOKEN}'", "srj-s-OAxT2b3c KEN='***'"),
    (f"srj-s-OAxT2b3c _id': '{AGENT_ID}', 'x': 1", "srj-s-OAxT2b3c _id': '***', 'x': 1"),
    (f"srj-s-OAxT2b3c  '{AGENT_ID}', 'x': 1", "srj-s-OAxT2b3c  '***', 'x': 1"),
    (f"{TOKEN[5:]}'", "***'"),
    # cut and glued
    (f"start {{'agent_id': '{AGENT_ID[:9]}", "start {'agent_id': 'RBb6…"),
    (f"export X_TOKEN='{TOKEN[:9]}", "export X_TOKEN='***"),
    ("{'token': 'abc<SNIP>, 'n': 1}", "{'token': '***<SNIP>, 'n': 1}"),
    (f"X_TOKEN='{TOKEN[:5]}Nov 20 20:34:30 30699 x", "X_TOKEN='***Nov 20 20:34:30 30699 x"),
    (f"X_TOKEN={TOKEN}Nov 20 20:34:30 30699 x", "X_TOKEN=***Nov 20 20:34:30 30699 x"),
    (f"X_TOKEN='{TOKEN[:5]}\nnext line", "X_TOKEN='***\nnext line"),
    (
        "-----BEGIN PRIVATE KEY-----\nab\ncd\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----",
    ),
]

LEFT = [
    "",
    "the token was bad, a secret matter, see credentials",
    "'server_token': None, 'x': ''",
    "export X_TOKEN=''",
    r"export X_TOKEN=''\nexport Y='1'",
    r"X_TOKEN=\nY=1",
    "['X_TOKEN=', 'Y=1']",
    "'serverSecret': <REDACTED>, 'uid': 'x'",
    "sirepo/private/token.py:254:receive text",
    "std::token::next",
    f"_Op(run, khsK) opId={OP_ID} 'opId': '{OP_ID}'",
    "'computeJobHash': '0cc175b9c0f1b6a831c399e269772661'",
    f"exec 'sirepo' 'job_cmd' '/u/x/in-{OP_ID}.json'",
    "LocalDriver(a=WUt4 k=sequential u=EPRS [_Op(run, pb5u)])",
    "'agent_id': 'WUt4'",
    "http://127.0.0.1:8001/x a@b",
    "Mrs. Bearer came late",
    "Beamline7's name is 'x'",
    f"'{OP_ID}' is unknown",
    "activityAnimation', 'x': 1",
    f"opId': '{OP_ID}', 'x': 1",
    "computeJobHash': '0cc175b9c0f1b6a831c399e269772661', 'x': 1",
    "srj-s-OAxT2b3c repo/prod/db'",
]


@pytest.mark.parametrize(("text", "masked"), MASKED)
def test_a_secret_is_masked(text: str, masked: str) -> None:
    assert mask_text(text) == masked
    assert mask_text(masked) == masked


@pytest.mark.parametrize("text", LEFT)
def test_what_is_no_secret_is_left(text: str) -> None:
    assert mask_text(text) == text


def _agent_ids_and_tokens(text: str) -> set[str]:
    found = re.findall(
        r"""(?:agent_?id|token)\\*['"]?[=:] ?\\*['"]?([A-Za-z0-9]{32})\b""", text, re.IGNORECASE
    )
    return set(found) | set(re.findall(r"start \{'agent_id': '(\w{32})'", text))


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
        "token": "abc",
        "agentId": AGENT_ID,
        "n": 1,
        "none": None,
        "secret": None,
        "list": [{"password": 123}, f"X_TOKEN={TOKEN}", ("a", 1.5, True)],
        "credentials": {"user": "u"},
        "env": [{"name": "X_TOKEN", "value": "abc"}, {"name": "HOME", "value": "/root"}],
    }
    assert mask_document(document) == {
        "token": MASK,
        "agentId": "RBb6…",
        "n": 1,
        "none": None,
        "secret": None,
        "list": [{"password": MASK}, "X_TOKEN=***", ("a", 1.5, True)],
        "credentials": MASK,
        "env": [{"name": "X_TOKEN", "value": MASK}, {"name": "HOME", "value": "/root"}],
    }


def test_a_document_nested_too_deep_is_masked_from_there() -> None:
    document: object = "x"
    for _ in range(5000):
        document = [document]
    assert MASK in json.dumps(mask_document(document))


@pytest.mark.parametrize(
    "name", ["token", "X_TOKEN", "serverSecret", "OTP", "apiKey", "agent_id", "my-credential"]
)
def test_names_of_secret_keys(name: str) -> None:
    assert is_secret_key(name)


@pytest.mark.parametrize("name", ["opId", "computeJid", "uid", "key", "agent"])
def test_names_of_other_keys(name: str) -> None:
    assert not is_secret_key(name)


@pytest.mark.parametrize(
    "piece", ["\\", "'", "token", "token='", "token: (", "token=\\", "://a:", "agent-local/", "token='a' "]
)
def test_hostile_repetition_takes_linear_time(piece: str) -> None:
    # a quadratic pattern would take minutes here
    mask_text("token='" + piece * (400_000 // len(piece)))


_PIECES = st.sampled_from(
    [
        *(
            "'",
            '"',
            "\\",
            "=",
            ": ",
            ":",
            ", ",
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            "\n",
            " ",
            "a",
            "--",
            "&",
            "@",
            "://",
            "/",
        ),
        *(
            "token",
            "'token'",
            "agent_id",
            "Authorization",
            "Bearer ",
            "<SNIP>",
            "None",
            "Nov 20 20:34:30 ",
            "…",
            "***",
            "\0",
        ),
        *(r"\n", "b'", "agent-local/", AGENT_ID, "%3D", "%26", "-----BEGIN PRIVATE KEY-----", "password"),
    ]
)


@settings(deadline=None, max_examples=400)
@given(st.lists(_PIECES | st.text(max_size=3), max_size=14).map("".join))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    masked = mask_text(text)
    assert mask_text(masked) == masked


_VALUES = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=8, max_size=40)


@settings(deadline=None, max_examples=200)
@given(
    _VALUES.map(lambda value: f"Q7{value}Z9"), st.sampled_from(["X_TOKEN", "password", "apiKey", "a.secret"])
)
def test_no_value_survives_in_any_notation(value: str, key: str) -> None:
    document = {key: value, "n": 1}
    for text in (
        repr(document),
        json.dumps(document),
        json.dumps(json.dumps(document)),
        repr(repr(document)),
    ):
        assert value not in mask_text(text)
        assert value[:6] not in mask_text(text)
        assert "n" in mask_text(text)


def test_a_secret_in_a_key_is_masked_too() -> None:
    masked = mask_document({"a": {"password=hunter2": 1, "plain": ["token=abcdefgh12345678"]}, 3: "x"})
    assert "hunter2" not in str(masked)
    assert masked == {"a": {f"password={MASK}": MASK, "plain": [f"token={MASK}"]}, 3: "x"}
