"""What secrets are called and look like, and what is shown instead of them."""

import re

FULL_ID_LENGTH = 32
MASK = "***"
CUT = "…"

AGENT_WORD = "agent[_-]?id"
SECRET_WORDS = (
    "token(?!i[sz])|secret(?!ar)|passw(?!ordless)|passphrase|passcode|(?<=[a-z0-9][_-])pass(?![a-z0-9_-])"
    "|(?<![a-z])pwd(?![a-z])|cookie(?!cutter)|otp(?!ath|int|lug|oint|ool|r[io])"
    f"|private(?!er)|{AGENT_WORD}|api[_-]?key|authorization|credential"
)
"""What names of secrets contain; words such as secretary, footprint and tokenizer do not count.

MYSQL_PWD is one, and PWD when its value is no path.
"""
SECRET_FORMS = (
    r"eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]+)?|gh[opsru]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])|xox[abeoprs]-[\w-]{10,}|AIza[\w-]{30,}"
)
"""Secrets known by their form: JWTs, and tokens of GitHub, GitLab, AWS, Slack and Google."""
SECRET_OPTIONS = {
    "curl": r"(?:-[A-Za-z]*[uU]|--(?:proxy-)?user)%s[^\s'\":]*:",
    "(?:mysql|mariadb)[\\w-]*": r"-p(?!['\"]?[\s,])%s",
    "sshpass": "-p%s",
    "redis-cli": "-a%s",
    "ldap[a-z]+": "-w%s",
    "(?:docker|podman|helm) login": "-p%s",
    "(?:mongo|snowsql)[a-z]*": "-p%s",
    "openssl": "-(?:k|pass(?:in|out)?)%s(?:pass:)?",
    "smbclient": r"-U%s[^\s'\"%%]*%%",
}
"""Programs with short options for secrets: what comes before the secret, and `%s` for spaces and quotes."""

COUNT = re.compile("tokens|cookies|token_?(?:count|len|limit|budget)", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?(?:e\d{1,3})?", re.ASCII)


def is_count(name: str, value: str) -> bool:
    """Whether this is how many tokens, and no token."""
    return _NUMBER.fullmatch(value) is not None and COUNT.search(name) is not None
