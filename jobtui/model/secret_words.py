"""What secrets are called and look like, and what is shown instead of them."""

import re
from itertools import pairwise

FULL_ID_LENGTH = 32
KEY_LENGTH = 60
"""Characters in a line of a private key at least, 76 at most; its last line may be shorter, padded."""
MASK = "***"
CUT = "…"

AGENT_WORD = "agent[_-]?id"
KEY_WORD = (
    "api[ ._-]?key|(?:access|account|encryption|master|session|signing|storage)[ ._-]?key"
    r"(?![ ._-]?(?:id|name))|client-key-data|(?<![a-z])tls\.key(?![a-z])"
)
"""Keys that are secrets; their ids and names are none."""
SECRET_WORDS = (
    "token(?!i[sz])|(?<!pull)secret(?!ar|[_-]?(?:name|(?:key)?ref))|passw(?!ordless)|passphrase|passcode|sess(?:ion)?[._-]?id(?:[a-z]{8})?(?![a-z])|connect\\.sid(?![a-z])|(?<=[a-z0-9][._-])pass(?![a-z0-9_-])"
    "|(?<![a-z])pwd(?![a-z])|cookie(?!cutter)|otp(?!ath|int|lug|oint|ool|r[io])"
    f"|private(?!er)|{AGENT_WORD}|{KEY_WORD}|authorization|credential(?!_helper)|rediscli_auth|dockerconfigjson"
    "|(?<![a-z])jwt(?![a-z0-9_-])|(?<![a-z0-9])_auth(?![a-z])|(?:amz|goog)-signature|(?<=[?&;])sig(?:nature)?(?==)"
)
"""What names of secrets contain; words such as secretary, footprint and tokenizer do not count.

MYSQL_PWD is one, and PWD when its value is no path.
"""
SESSION_WORDS = (
    r"(?:(?<![a-z])(?:[hlops]|s?api)?sid|sess(?:ion)?|[cx]srf|_oauth2_proxy|aspxauth|castgc|_identity"
    r"|s?sess[0-9a-f]{32}|aspnetcore\.[\w.\-]+|_shibsession_\w+|remember_\w+"
    r"|wordpress_(?:sec|logged_in)_\w+)(?![\w.\-])"
)
"""What names of sessions and of cookies that give access end with; a value that looks random is a secret."""
SECRET_FORMS = (
    r"eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]+)?|gh[opsru]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{20,}|AIza[\w-]{30,}"
    r"|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}|[rs]k_live_[A-Za-z0-9]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,}|hf_[A-Za-z]{30,}|dckr_pat_[\w-]{20,}|hvs\.[\w-]{20,}"
    r"|sk-(?:(?:ant|proj)-[\w-]{20,}|[A-Za-z0-9]{32,})|AGE-SECRET-KEY-1[A-Z0-9]{50,}|hooks\.slack\.com/services/[\w/]{20,}"
)
"""Secrets known by their form: JWTs, and tokens of GitHub, GitLab, AWS, Slack, Google, Stripe and others."""
SECRET_OPTIONS = {
    "curl": r"(?:-[A-Za-z]*[uU]|--(?:proxy-)?user)%s[^\s'\":]*:",
    "(?:mysql|mariadb)[\\w-]*": r"-p(?!['\"]?[\s,])%s", "sshpass": "-p%s", "redis-cli": "-a%s",
    "ldap[a-z]+": "-w%s", "(?:docker|podman|helm) login": "-p%s", "(?:mongo|snowsql)[a-z]*": "-p%s",
    "openssl": "-(?:k|pass(?:in|out)?)%s(?:pass:)?", "smbclient": r"-U%s[^\s'\"%%]*%%",
}  # fmt: skip
"""Programs with short options for secrets: what comes before the secret, and `%s` for spaces and quotes."""

COUNT = re.compile(
    "tokens|cookies|sess(?:ion)?[._-]?id|token_?(?:age|budget|count|expir|len|limit|ttl|type|usage)",
    re.IGNORECASE,
)
_SESSION_KEY = re.compile(SESSION_WORDS, re.IGNORECASE | re.ASCII)
_HEX = re.compile("(?=.*[0-9])(?=.*[a-f])[0-9a-f]{8,}", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?(?:e\d{1,3})?", re.ASCII)


def is_count(name: str, value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None and COUNT.search(name) is not None


def is_session(name: str, value: str) -> bool:
    """Whether a key is one of sessions or cookies, and its value neither a name, a number nor a time."""
    return _SESSION_KEY.search(name) is not None and is_random(value)


def is_random(value: str) -> bool:
    body = re.sub(r"%[0-9a-fA-F]{2}|[\W_]", "", value)
    is_long = len(body) >= 16 and any(map(str.isdigit, body)) and changes(body) >= len(body) / 4
    return is_long or _HEX.fullmatch(value.replace("-", "").rstrip(".")) is not None


def changes(body: str) -> int:
    """How often letters or digits of one kind follow those of another."""
    kinds = [(char.islower(), char.isupper(), char.isdigit()) for char in body]
    return sum(one != other for one, other in pairwise(kinds))
