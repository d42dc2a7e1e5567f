import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobtui.model.secret_words import MASK
from jobtui.model.secrets import is_secret_key, mask_document, mask_line, mask_text, masked_lines

CAPTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJib2IifQ.c2lnbmF0dXJlLXg_9"
AGENT_ID = "RBb6Vj4wc0GxISMpa9X5jHsjeB43mFmm"
TOKEN = "a8z0JysjwwpLRCx2lX9pENrSy0AD7cvp"
KEY_LINE = "MIIEpAIBAAKCAQEA7bq2h0X9Yl/kq3Zr1vFJt0uC5m2e+8WnGdT4sPzRLxQwAb9c"
OP_ID = "khsKpBCrpfCnFYD1h0DppNggyzUpVfKs"

MASKED = [
    # names of secrets, and programs with options of their own
    ("export MYSQL_PWD=hunter2", "export MYSQL_PWD=***"),
    ("Server=h;Uid=u;Pwd=hunter2;", "Server=h;Uid=u;Pwd=***;"),
    ("db_pass: hunter2", "db_pass: ***"),
    ("passcode=hunter2", "passcode=***"),
    ("mongosh -p hunter2 db", "mongosh -p *** db"),
    ("openssl rsa -in a.pem -passin pass:hunter2", "openssl rsa -in a.pem -passin pass:***"),
    # more words than one, on a line or a record of their own
    ("password: correct horse battery", "password: ***"),
    ("password = correct horse # why", "password = *** # why"),
    ("passphrase: correct horse user: bob", "passphrase: *** user: bob"),
    ("Nov 20 20:34:30 7 0 a.py:1:f password: correct horse", "Nov 20 20:34:30 7 0 a.py:1:f password: ***"),
    ("tried password: hunter2 for bob", "tried password: *** for bob"),
    (r"'password: correct\nhorse'", "'password: ***'"),
    (r"'password: hunter2\nuser: bob'", r"'password: ***\nuser: bob'"),
    # YAML, Python and JSON
    ("password: !!str hunter2", "password: !!str ***"),
    ("password: &a hunter2", "password: &a ***"),
    ("password: |- hunter2", "password: |- ***"),
    ('password = """it\'s "so" secret"""; x = 1', 'password = """***"""; x = 1'),
    ("password=$'hunter2' x", "password=$'***' x"),
    ('{"name": "X_TOKEN", "value": "hunter2", "n": 1}', '{"name": "X_TOKEN", "value": "***", "n": 1}'),
    (r"{\"name\":\"X_TOKEN\",\"value\":\"hunter2\"}", r"{\"name\":\"X_TOKEN\",\"value\":\"***\"}"),
    ('{"key": "token", "value": {"stringValue": "ab"}}', '{"key": "token", "value": {"stringValue": "***"}}'),
    ('["--password","hunter2","-v"]', '["--password","***","-v"]'),
    # XML, query strings, colours that begin with one character
    ("<password>hunter2</password>", "<password>***</password>"),
    ('<add key="password" value="hunter2"/>', '<add key="password" value="***"/>'),
    ("%22password%22%3A%22hunter2%22", "%22password%22%3A%22***%22"),
    ("\x9b31mpassword\x9b0m=hunter2", "\x9b31mpassword\x9b0m=***"),
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
    # lines of a key, each by itself
    (KEY_LINE, "***"),
    (f"{KEY_LINE} \r", "*** \r"),
    (f"'{KEY_LINE}'", "'***'"),
    (f"Nov 22 10:00:00 host prog[12]: {KEY_LINE}", "Nov 22 10:00:00 host prog[12]: ***"),
    (f"before\n{KEY_LINE}\nafter", "before\n***\nafter"),
    ("Zm9vYmFyYmF6cXV4cXV1eA==", "***"),
    # what cannot be seen hides no key
    ("password\x1b[0m=hunter2 x", "password\x1b[0m=*** x"),
    ("\x1b[password=hunter2", "\x1b[password=***"),
    ("a\x1b[2Jb token=x\x07y; c\x00d secret=z \u202ef", "a\x1b[2Jb token=***; c\x00d secret=*** \u202ef"),
    (
        "\x1b[1mpass\x1b[31mword\x1b[0m: \x1b[2mhunter2\x1b[0m",
        "\x1b[1mpass\x1b[31mword\x1b[0m: \x1b[2m***\x1b[0m",
    ),
    ("pass\u200bword=hunter2", "pass\u200bword=***"),
    ("to\x00ken=abc", "to\x00ken=***"),
    # YAML: the value in the lines below its key
    ("password:\n  hunter2\nuser: bob", "password:\n  ***\nuser: bob"),
    ("a: 1\r\ntoken: # why\r\n\tabc\r\nb: 2", "a: 1\r\ntoken: # why\r\n\t***\nb: 2"),
    ("client_secret: |\n  abc\n  de: f\n\n   g\nn: 1", "client_secret: |\n  ***\n  ***\n\n   ***\nn: 1"),
    ("- api_key: >-\n    a b\n  user: bob", "- api_key: >-\n    ***\n  user: bob"),
    ("tokens:\n- abc\n- def\nn: 1", "tokens:\n***\n***\nn: 1"),
    # short options of programs that take a secret so
    ("curl -sS -u bob:hunter2 https://h", "curl -sS -u bob:*** https://h"),
    ("curl --proxy-user 'bob:hun ter' x -u a:b", "curl --proxy-user 'bob:***' x -u a:***"),
    ("['curl', '-u', 'bob:hunter2', '-v']", "['curl', '-u', 'bob:***', '-v']"),
    ("mysql -h db -uroot -phunter2 x", "mysql -h db -uroot -p*** x"),
    ("mysqldump -p'hun ter' db", "mysqldump -p'***' db"),
    ("sshpass -p hunter2 ssh h; ls -p x", "sshpass -p *** ssh h; ls -p x"),
    ("docker login -u bob -p hunter2", "docker login -u bob -p ***"),
    # cookies and phrases
    ("Cookie: sid=abc; theme=dark", "Cookie: ***"),
    ("curl -H 'Cookie: a=b; c=d' h", "curl -H 'Cookie: ***' h"),
    ("Set-Cookie: sid=abc; Path=/; Secure", "Set-Cookie: ***"),
    ("passphrase: hunter2", "passphrase: ***"),
    ("private_key: hunter2", "private_key: ***"),
    ("userOtp=123456", "userOtp=***"),
    # known by their form
    (f"sent {JWT} to h", "sent *** to h"),
    (f"git clone https://h x {'ghp_' + 'a1B2c3D4e5' * 4}", "git clone https://h x ***"),
    (f"x={'github_pat_' + 'a1_B2' * 6},", "x=***,"),
    ("id AKIAZ7QXLN2PWK4TVB3C used", "id *** used"),
    # brackets that do not end hide their lines, and no others
    ("token={\ndisk full", "token=***\ndisk full"),
    ('credentials: {\n  "user": "a",\n  "key": "b"\nnext', "credentials: ***\nnext"),
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
    "max_tokens=4096",
    "tokens_per_second=41.5",
    "max_token_len=128",
    "num_tokens=1e6",
    "private: yes",
    "PWD=/home/bob OLDPWD=/tmp",
    "password_file=~/.pw: permission denied",
    "password: incorrect",
    "Slurm credential: lifetime 120",
    "tests_pass: true",
    "passes=12 bypass=x compass=y",
    '{"max_tokens": 4096, "n": 1}',
    "used 12 tokens: 4096 of 8192",
    "cat: /etc/passwd: Permission denied",
    "/run/secrets/token: No such file or directory",
    "munge credential: expired",
    "slurm auth credential: Invalid, or replayed",
    "\x1b[31mred\x1b[0m and no key",
    "secretary: Bob",
    "private: 192.168.0.1",
    "privateIp=10.2.0.0/16, public=1.2.3.4",
    "memory footprint: 12 MB, hotplug=1, rootpath: /x, tokenizer=bpe, passwordless=sure",
    "cookies: 12",
    "password:\nuser: bob",
    "no token:\n  File x",
    "journalctl -u sirepo:x, docker run -u 1000:1000 -p 80:80 img",
    "curl -o out:put https://h; mysql -h h -P 3306; ls -phost",
    "ghost_writer asiatic AKIA eyJ",
    "/gpfs/projects/LongDirectory1/anotherLongDirectory2/resultsOfRun3/x4/output5File",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
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
    "piece",
    [
        "\\",
        "'",
        "token",
        "token='",
        "token: (",
        "token=\\",
        "://a:",
        "agent-local/",
        "token='a' ",
        "token={",
        "\x1b[",
        "A",
        "aA1/",
        "-----BEGIN PRIVATE KEY-----",
        "token:\n  ",
        "curl -u ",
        "eyJaaaaaaaa.",
        "tokentoken",
    ],
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
            "curl -u ",
            "mysql -p",
            "Cookie: ",
            ": |\n  ",
            JWT,
            "…",
            "***",
            "\0",
        ),
        *(r"\n", "b'", "agent-local/", AGENT_ID, "%3D", "%26", "-----BEGIN PRIVATE KEY-----", "password"),
    ]
)


@settings(deadline=None, max_examples=400)
@given(st.lists(_PIECES | st.text(max_size=3), max_size=14).map("".join))
@example("Cookie: =\\")
@example("mysql -p\x1b\x1f0")
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


@pytest.mark.parametrize(
    "words",
    [
        ["login", "--password", "hunter2", "-v"],
        ["password", "hunter2"],
        [{"stringValue": "--api-key"}, {"stringValue": "hunter2"}],
    ],
)
def test_the_value_behind_an_option_of_a_list_is_masked(words: list[object]) -> None:
    document = {"key": "process.command_args", "value": {"arrayValue": {"values": words}}}
    masked = json.dumps(mask_document(document))
    assert "hunter2" not in masked
    assert json.dumps(words[0])[1:-1] in masked
    assert mask_document({"max_tokens": 4096, "args": ["-v", "a"]}) == {
        "max_tokens": 4096,
        "args": ["-v", "a"],
    }


@pytest.mark.parametrize(
    "key", ["password:", "password: |", "- token: >-", "{'password':", '"api_key":', "  secret: # why"]
)
@pytest.mark.parametrize(
    "head", ["", "Nov 20 20:34:30 30699     0 a/b.py:1:f ", "2026-11-22 00:39:51.175 | 9 | INFO | a.b:1] "]
)
def test_a_value_on_the_line_after_its_key_is_masked(head: str, key: str) -> None:
    lines = [f"{head}{key}", f"{head}      'hunter2'", f"{head}      battery", f"{head}other: 1"]
    assert [*masked_lines(lines)] == [lines[0], f"{head}      '{MASK}'", f"{head}      {MASK}", lines[3]]


def test_a_block_is_masked_line_by_line() -> None:
    lines = ["password:", "  hunter2", "", "  more", "user: bob", "  password: x", "  n: 1"]
    assert [*masked_lines(lines)] == [
        "password:", "  ***", "", "  ***", "user: bob", "  password: ***", "  n: 1"
    ]  # fmt: skip


def test_a_key_is_masked_up_to_where_it_ends_in_lines() -> None:
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    lines = ["echo", begin, "Proc-Type: 4,ENCRYPTED", "", "c2hvcnQ", end, "done"]
    assert [*masked_lines(lines)] == ["echo", begin, MASK, MASK, MASK, end, "done"]
    cut = ["echo", begin, "c2hvcnQ", "echo 'all is well'", "c2hvcnQ"]
    assert [*masked_lines(cut)] == ["echo", begin, MASK, *cut[3:]], "a key that was cut off hides no more"


@pytest.mark.parametrize(
    ("line", "is_masked"),
    [
        ("wJ4kQz9LmX2vB7nR", True),
        ("  'wJ4kQz9LmX2vB7nR8sT1'\r", True),
        ("wJ4kQz9LmX2vB7nR8sT1+/aa==", True),
        ("an entry\nwJ4kQz9LmX2vB7nR", True),
        ("wJ4kQz9LmX2vB7nR is done", False),
        ("Job1CompletedSuccessfully", False),
        ("/scratch/User12/JobA1/x", False),
        ("3f2a9c0d4b5e6f708192a3b4", False),
        ("================", False),
    ],
)
def test_a_line_that_may_end_a_key_is_masked(line: str, is_masked: bool) -> None:
    masked = mask_line(line)
    assert ("wJ4k" not in masked) if is_masked else masked == line
    assert mask_line(masked) == masked


def test_a_secret_in_a_key_is_masked_too() -> None:
    masked = mask_document({"a": {"password=hunter2": 1, "plain": ["token=abcdefgh12345678"]}, 3: "x"})
    assert "hunter2" not in str(masked)
    assert masked == {"a": {f"password={MASK}": MASK, "plain": [f"token={MASK}"]}, 3: "x"}
