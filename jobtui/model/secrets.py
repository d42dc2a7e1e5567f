"""Masking of secrets in any text or document that is shown, exported or put into an error.

The rule (design.md, Rules 3): the value of every key whose name contains one of `SECRET_WORDS` is masked, and
agent ids are cut to four characters. Keys are found in dict reprs, JSON at any depth of escaping, shell
assignments and options, YAML, headers, query strings and `user:password@host`; of prose only `password is X`,
where X looks like no word. Tokens that are known by their form need no key, nor do the short options of
programs such as curl. Log text is cut and glued anywhere, so a value without an end is masked up to the next
record or the end of its line. Lines of a private key are known by themselves, as a view may begin in the
middle of one. What cannot be seen, such as colours, hides no key: where it would, it is left out. Masking
twice changes nothing more. Op ids are no secrets, nor are counts of tokens, nor what a program says of a
credential.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress

from jobtui.model import secret_words
from jobtui.model.patterns import regex
from jobtui.model.secret_words import COUNT, KEY_WORD, MASK, SECRET_WORDS, SESSION_WORDS, holds_any

MAX_DEPTH = 100
"""Documents nested deeper are masked from there on, so that no input can exhaust the stack."""

_SECRET_KEY = regex(SECRET_WORDS, re.IGNORECASE | re.ASCII)
_MAYBE_KEY = regex(rf"{SESSION_WORDS}|^(?:auth|pass|pw)$|_(?:pat|key)$", re.IGNORECASE | re.ASCII)
_KEY_GATE = regex(
    r"agent(?:[_-]?id|-local/|\\*['\"]?[:=])|si(?:d|g|gnature)\b|pwd|(?<![a-z0-9])pw(?![a-z0-9])"
    rf"|_(?:pat|key)\b|assw|assph|{KEY_WORD}", re.ASCII,
)  # fmt: skip
_UNSEEN = regex(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
"""Colours and other sequences for terminals, and characters that are not seen."""
_FORM_GATE = regex(r"gh[opsru]_|\$(?:[1567y]|2|gy|a[pr]|s|p)[\w-]*\$")
_OPTION = regex(r"--?[\w.\-]+", re.ASCII)
_NAME = regex(r"[\w.\-]+", re.ASCII)
_BETWEEN = "', '"


def masked_lines(lines: Iterable[str]) -> Iterator[str]:
    """The same lines of one text with what is secret in them masked, private keys as a whole."""
    from jobtui.model.secret_blocks import SecretBlocks

    return map(mask_text, map(SecretBlocks().hide, lines))


def mask_text(text: str) -> str:
    """`text` with every secret in it masked. Never raises."""
    # in logs many lines differ in their numbers only
    shape = text.encode("utf-8", "surrogatepass").translate(_NUMBERS) if len(text) <= SHAPE_LENGTH else b""
    if shape in _plain_shapes and not holds_any(_NUMBER_SIGNS, text):
        return text
    needed = _steps_for(text)
    masked = _masked(text, needed)
    if shape and True not in needed and masked == text and text.isprintable():
        if len(_plain_shapes) >= SHAPES_KEPT:
            _plain_shapes.clear()
        _plain_shapes.add(shape)
    for _ in range(4):  # masking may uncover a secret that invisible characters hid
        seen = masked if masked.isprintable() else _UNSEEN.sub("", masked)
        if seen == masked or (again := _masked(seen)) == seen:
            break
        masked = _masked(again)
    return masked


def mask_line(line: str) -> str:
    """A line of a log masked; also one that may be the last of a private key, as none beside it is known."""
    text = mask_text(line)
    return "\n".join(map(_without_end, text.split("\n"))) if "\n" in text else _without_end(text)


def _without_end(line: str) -> str:
    """A line, or the mask where all of it is base64 that is padded, or looks like that of a key."""
    found = secret_words.KEY_END.fullmatch(line) if len(line) >= 16 and " " not in line.strip() else None
    return MASK if found and (found["padding"] or secret_words.is_key(found["body"])) else line


def _steps_for(text: str) -> tuple[bool, ...]:
    """Which steps may find a secret: the same ones with other digits, but for `_NUMBER_SIGNS`."""
    low = text.lower()
    has_key = may_have_key(low)
    return (
        text[-1:] == "=" or "auth" in low or "basic" in low,
        ("\n" in text or "\\" in text) and (has_key or may_hide_below(text)),
        "srj-" in low or "'" in low[: secret_words.FULL_ID_LENGTH + 2],
        holds_any(_FORM_SIGNS, text)
        or (("gh" in text or "$" in text) and _FORM_GATE.search(text) is not None)
        or ("{" in text and holds_any(("{S", "{MD5", "{CRYPT", "{PBKDF"), text))
        or (("|" in text or "<<<" in text) and holds_any(_READER_SIGNS, text))
        or (has_key and ("value" in low or "Secret" in text or "send" in low))
        or ("identified" in low and "by" in low),
        (" -" in low or "'-" in low or '"-' in low or "rdp" in low) and holds_any(_OPTION_SIGNS, low),
        has_key,
    )


def _masked(text: str, needed: tuple[bool, ...] = ()) -> str:
    if True in (needed := needed or _steps_for(text)):
        # imported where it is needed first: its patterns are a good part of what starting costs
        from jobtui.model.secret_scan import STEPS

        for step in compress(STEPS, needed):
            text = step(text)
    return secret_words.without_keys(text) if len(text) >= secret_words.KEY_LENGTH else text


_NUMBERS = bytes.maketrans(b"123456789", b"000000000")
SHAPE_LENGTH, SHAPES_KEPT = 400, 2_000
"""Characters in a text whose shape is remembered at most, and how many are."""
_plain_shapes: set[bytes] = set()
"""Texts without any sign of a secret, with 0 for each digit."""
_NUMBER_SIGNS = (":543", ":6432", "7z", "ya29.", "{MD5", "$")
"""Signs with digits, which a shape does not show; also those of hashes, as in `$6$`."""
_FORM_SIGNS = (
    ":543", ":*:", "eyJ", "AKIA", "ASIA", "AIza", "pat-", "pat_", "xox", "xapp-", "GOCSPX-",
    "ya29.", "k_live_", "SG.", "npm_", "pypi-", "hf_", "hvs.", "sk-", "AGE-SECRET", "hooks.slack",
    "sqlplus", "sqlldr", "wandb", "ngrok", ":6432", "auth=(", "Auth(", "htpasswd",
)  # fmt: skip
_READER_SIGNS = ("sudo", "stdin", "chpasswd", "kinit", "with-token", "passphrase-fd")
_OPTION_SIGNS = (
    "curl", "sql", "mariadb", "mongo", "openssl", "sshpass", "redis-cli", "ldap", " login", "smbclient",
    "zip", "7z", "unrar", "ipmi", "snmp", "plink", "pscp", "lftp", "rdp", "rdesktop", "store_cred", "http -",
    "https -",
)  # fmt: skip
_KEY_SIGNS = (
    "auth", "cre", "dockerconf", "token", "otp", "jwt", "pass", "sess", "cookie", "private", "://",
    "bearer", "srf", "castgc", "aspnetcore", "stringdata", "_identity", "remember_", "wordpress_",
)  # fmt: skip
_GATE_SIGNS = ("agent", "key", "sid", "sig", "pw", "_pat", "assw", "assph")
"""What each text has that holds a secret: short, as it is looked for in every line."""


def may_have_key(low: str) -> bool:
    """Whether a secret key may be in a text in small letters."""
    return (
        holds_any(_KEY_SIGNS, low)
        or ("@" in low and ":/" in low)
        or (holds_any(_GATE_SIGNS, low) and _KEY_GATE.search(low) is not None)
    )


def may_hide_below(text: str) -> bool:
    """Whether a line of a text may say that lines below it are secret."""
    has_sign = holds_any(("eyJ", "data:", 'data":'), text) or may_have_key(text.lower())
    return has_sign or secret_words.without_keys(text) != text


def mask_document(value: object) -> object:
    """A copy of a decoded JSON document: values under secret keys masked, all text through `mask_text`.

    Also knows lists of `{"name": key, "value": ...}` and `{"key": key, "value": ...}`, in which environments
    and attributes are often kept.
    """
    return _mask_value(value, 0)


def is_secret_key(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _mask_value(value: object, depth: int) -> object:
    if isinstance(value, str):
        return mask_text(value)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth >= MAX_DEPTH:
        return MASK
    if isinstance(value, Mapping):
        names = {"value": value.get("name", value.get("key"))}
        if value.get("kind") == "Secret":
            names |= {"data": "secret", "stringData": "secret"}  # as Kubernetes calls them
        return {
            _mask_value(key, depth): _mask_entry(names.get(key, key), entry, depth + 1)
            for key, entry in value.items()
        }
    entries = _mask_list(value, depth + 1)
    return tuple(entries) if isinstance(value, tuple) else list(entries)


def _mask_list(values: Iterable[object], depth: int) -> Iterator[object]:
    """The entries of a list: behind an option of a command such as `--password` there is its value."""
    values = [*values]
    texts = [entry for entry in values if isinstance(entry, str)]
    if len(texts) == len(values) and any("PRIVATE KEY-" in text for text in texts):
        values = [*masked_lines(texts)]
    if holds_any(_OPTION_SIGNS, " ".join(texts).lower()):
        # as the text of a command would be masked, in which programs have options of their own
        parts = mask_text(_BETWEEN.join(texts)).split(_BETWEEN)
        values = [*parts] if len(parts) == len(values) else values
    name = ""
    for at, entry in enumerate(values):
        inner = next(iter(entry.values())) if isinstance(entry, Mapping) and len(entry) == 1 else entry
        text = inner if isinstance(inner, str) else ""  # also that in `{"stringValue": text}`
        is_pair = len(values) == 2 and at == 0 and _NAME.fullmatch(text) is not None
        if isinstance(entry, Mapping) and is_secret_key(name):
            yield {key: _mask_entry(name, value, depth + 1) for key, value in entry.items()}
        else:
            yield _mask_entry(name, entry, depth)
        name = text if is_pair or _OPTION.fullmatch(text) else ""


def _mask_entry(key: object, value: object, depth: int) -> object:
    if not is_secret_key(name := key if isinstance(key, str) else ""):
        may_be = isinstance(value, str) and _MAYBE_KEY.search(name) is not None
        is_own = may_be and mask_text(f"{name}={value}").startswith(f"{name}={MASK}")
        return MASK if is_own else _mask_value(value, depth)
    if value is None or isinstance(value, bool) or (isinstance(value, int) and COUNT.search(name)):
        return value
    if not isinstance(value, str):
        return MASK
    from jobtui.model.secret_scan import replacement

    return replacement(value, name)
