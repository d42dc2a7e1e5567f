"""What secrets are called and look like, and what is shown instead of them."""

import re
from binascii import a2b_base64
from itertools import pairwise

from jobtui.model.patterns import regex

FULL_ID_LENGTH = 32
KEY_LENGTH = 60
"""Characters in a line of a private key at least, 76 at most; its last line may be shorter, padded."""
MASK = "***"
CUT = "…"

AGENT_WORD = "agent[_-]?id"
KEY_WORD = (
    "api[ ._-]?key|(?:access|account|auth|encryption|master|session|signing|storage)[ ._-]?key"
    r"(?![ ._-]?(?:id|name))|client-key-data|tls\.key(?<![a-z]tls\.key)(?![a-z])"
)
"""Keys that are secrets; their ids and names are none."""
SECRET_WORDS = (
    "token(?!i[sz]|-stdin)|secret(?<!pullsecret)(?!ar|[_-]?(?:name|(?:key)?ref))|passw(?!ordless|ord-stdin)|passphrase|passcode|sess(?:ion)?[._-]?id(?:[a-z]{8})?(?![a-z])|connect\\.sid(?![a-z])|pass(?<=[a-z0-9][._-]pass)(?![a-z0-9_-])"
    "|pwd(?<![a-z]pwd)(?![a-z])|pw(?<=[a-z0-9][._-]pw)(?![a-z0-9_-])|cookie(?!cutter)|otp(?!ath|int|lug|oint|ool|r[io])"
    f"|private(?!er)|stringdata(?=\\\\*['\"]?\\s*:)|{AGENT_WORD}|{KEY_WORD}|authorization|x-auth(?<![a-z0-9]x-auth)(?![a-z])"
    "|credential(?!_helper)|redis(?:cli)?_auth|dockerconfigjson"
    "|jwt(?<![a-z]jwt)(?![a-z0-9_-])|_auth(?<![a-z0-9]_auth)(?![a-z])|(?:amz|goog)-signature|sig(?<=[?&;]sig)(?:nature)?(?==)"
)
"""What names of secrets contain; words such as secretary, footprint and tokenizer do not count.

Each word begins with a letter, which is looked for fast, and looks back from its end.
MYSQL_PWD is one, and PWD when its value is no path.
"""
SESSION_WORDS = (
    r"(?:sid(?<![a-z]sid)|[hlops]sid(?<![a-z].sid)|apisid(?:(?<![a-z]apisid)|(?<=sapisid)(?<![a-z]sapisid))"
    r"|sig(?<![a-z]sig)(?:nature)?|sess(?:ion)?|[cx]srf|_oauth2_proxy|aspxauth|castgc|_identity"
    r"|s?sess[0-9a-f]{32}|aspnetcore\.[\w.\-]+|_shibsession_\w+|remember_\w+"
    r"|wordpress_(?:sec|logged_in)_\w+)(?![\w.\-])"
)
"""What names of sessions, cookies and signatures end with; a value that looks random is a secret."""
UNSURE_WORDS = (
    r"p(?:ass(?=\\*['\"]?[ \t]*=|\\*['\"][ \t]*:[ \t]*\\*['\"])|w)"
    r"(?<![\w.\-+/=]pw)(?<![\w.\-+/=]pass)(?![\w.\-])"
    r"|_(?:pat|key)(?<!public_key)(?<!primary_key)(?<!foreign_key)(?<!partition_key)(?<!sort_key)(?<!cache_key)"
    r"(?=\\*['\"]?[ \t]*[=:])"
)
"""Names of secrets, the last two in capitals, that are names of other things too: a word is no secret."""


def holds_any(signs: tuple[str, ...], text: str) -> bool:
    # a loop over plain texts, because nearly every line ends here: `any` or a pattern takes twice as long
    for sign in signs:  # noqa: SIM110
        if sign in text:
            return True
    return False


COUNT = regex(
    "tokens|cookies|sess(?:ion)?[._-]?id|token_?(?:age|budget|count|expir|len|limit|ttl|type|usage)",
    re.IGNORECASE,
)
_KEY_BODY = re.compile(r"(?:^|(?<=[\s'\"|>:]))[A-Za-z0-9+/]{60,76}={0,2}(?=(?:\\+n)?[\s'\",\\]*$)", re.ASCII)
KEY_END = regex(r"[\s'\"|>\\]*(?P<body>[A-Za-z0-9+/]{16,76}(?P<padding>={0,2}))[\s'\"\\]*", re.ASCII)
_LEAST_CHANGES = 0.4
"""How often letters of one kind follow those of another in base64 at least, and hardly ever in words."""
_MOST_SLASHES = 6
_HEX = regex("(?=.*[0-9])(?=.*[a-f])[0-9a-f]{8,}", re.IGNORECASE)


def is_random(value: str) -> bool:
    """Whether a value is neither a name, a number nor a time."""
    body = re.sub(r"%[0-9a-fA-F]{2}|[\W_]", "", value)
    is_hex = _HEX.fullmatch(value.replace("-", "").rstrip(".")) is not None
    is_long = len(body) >= 16 and " " not in value and any(map(str.isdigit, body))
    return is_hex or (is_long and changes(body) >= len(body) / 4)


def decoded(value: str) -> str:
    """The text that a value is in base64; empty where it is none."""
    try:
        return a2b_base64(value, strict_mode=True).decode()
    except ValueError:
        return ""


def is_key(body: str) -> bool:
    """Whether base64 has letters of all kinds, and is neither a path nor words."""
    kinds = (str.islower, str.isupper, str.isdigit)
    is_path = body.count("/") > (2 if body[0] == "/" else _MOST_SLASHES)
    is_changing = len(body) >= KEY_LENGTH or changes(body) >= _LEAST_CHANGES * len(body)
    return not is_path and is_changing and all(any(map(kind, body)) for kind in kinds)


def without_keys(text: str) -> str:
    """`text` without the lines of a private key, which are known by themselves."""
    if "\n" in text:
        return "\n".join(map(without_keys, text.split("\n")))
    if " " in text[-KEY_LENGTH:].rstrip():  # cheap, as nearly every line ends here
        return text
    return _KEY_BODY.sub(lambda found: MASK if is_key(found[0]) else found[0], text)


def changes(body: str) -> int:
    """How often letters or digits of one kind follow those of another."""
    kinds = [(char.islower(), char.isupper(), char.isdigit()) for char in body]
    return sum(one != other for one, other in pairwise(kinds))
