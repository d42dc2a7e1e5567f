"""Finding the secrets in a text: the part of masking that nearly no text needs.

Each function says how it reads keys, quotes, brackets and cuts; what counts as secret, in `secrets`.
"""

import re

from jobtui.model import secret_words
from jobtui.model.ids import PREFIX_LENGTH
from jobtui.model.patterns import regex
from jobtui.model.secret_blocks import WORDLIKE, SecretBlocks, end_of
from jobtui.model.tables import tables_of

_AGENT_ID = rf"[a-z0-9]{{{secret_words.FULL_ID_LENGTH}}}\b"
_AGENT_BEGIN = rf"agent-local/|agent(?<!\wagent)\\*['\"]?[:=] ?\\*['\"]?(?={_AGENT_ID})"
_AGENT_KEY = regex(rf"{secret_words.AGENT_WORD}|^agent\W", re.IGNORECASE | re.ASCII)
_STARTS = (
    rf"(?P<agent>{_AGENT_BEGIN})|(?P<url>:/(?:/|(?<=(?:ttp|tps|sql|res|dis|mqp):/)))|(?P<bearer>bearer[ ]+)"
    rf"|(?P<pem>-----begin [a-z ]{{0,40}}private key-----)|(?P<key>{secret_words.SECRET_WORDS})"
    rf"|(?P<session>{secret_words.SESSION_WORDS})|(?P<unsure>{secret_words.UNSURE_WORDS})"
)
_START = regex(_STARTS, re.ASCII)
_ANY_START = regex(re.sub(r"\?P<\w+>", "?:", _STARTS), re.ASCII)
"""What may announce a secret, in lower case, which is found much faster than in any case, or with groups."""
_TIME = r"[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d "
_RECORD = regex(_TIME)
"""The time at the head of a log record, which may be glued to the end of the one before."""
_RECORD_LENGTH = len("Nov 20 20:34:30 ")
_SNIP = "<SNIP>"
_KEPT_VALUES = {"", "#", "|", "|-", "|+", ">", ">-", ">+", "<REDACTED>", secret_words.MASK} | {
    *("None", "null", "true", "false", "True", "False", "yes", "no")
}
"""Values that hold no secret, and tell something."""
_ADDRESS = regex(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d+)?|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:/\d+)?", re.I)
"""What a private network has, and no secret looks like."""
_OF_PATH = regex(r"pwd\b|(?:file|path|dir)\b")
_PATH = regex(r"~?/|\.{1,2}/|\$|[A-Za-z]:\\")
"""Names of which the value is a path, and how paths begin."""

_WORD_END = regex(r"[\w.\-]*", re.ASCII)
_SEPARATOR = regex(
    r"(?P<quote>\\*['\"]|%22)?\]?[ \t]*(?:==?|[=\-]>|<-|:=|:(?!:)|%3[dDaA])>?(?(quote)\s*|[ \t]*)"
    r"(?:%22|(?:!!?\w*|&\w+|[|>][+\-]?)[ \t]+(?=[^\s#]))?"
)
"""What is between a key and its value, with a tag, an anchor or a style of YAML."""
_OPTION_SEPARATOR = regex(
    r"\\*['\"](?:\}, *\{ *\\*['\"]\w+\\*['\"]: *|, *)(?=[bBuU]?\\*['\"])"
    r"|(?:[ \t]|\\\r?\n)+(?=[^\s\-\\]|\\+['\"])"
)
_PAIR_SEPARATOR = regex(r"\\*['\"], *(?=[bBuU]?\\*['\"])")
_TAG_HEAD = regex(r"<(?:[\w.:\-]*|name>\s*[\w.\-]*|\w+[ ][^<>]*\b(?:key|name|id)=\\*['\"][\w.\-]*)$", re.A)
_TAG_SEPARATOR = regex(r"(?:\\*['\"][^<>]*|\s*</name>\s*<value)?>(?=[^<]+</)")
_ITEM_HEAD = regex(r"\b(?:name|key)\\*['\"]?[ ]*[=:][ ]*(?:\\*['\"])?[\w.\-]*$", re.I | re.A)
_ITEM_SEPARATOR = regex(
    r"(?:\\*['\"])?(?:[ ,]|\\{1,8}[nrt])+\\*['\"]?value\\*['\"]?[ ]*[=:][ ]*"
    r"(?:\{[ ]*\\*['\"]\w+\\*['\"][ ]*:[ ]*)?",
    re.IGNORECASE,
)
"""Between the name and the value of `{"name": ..., "value": ...}`, of an attribute of a span, or in XML."""
_PAIR_HEAD = regex(r"[(\[][bBuU]?\\*['\"][\w.\-]*$", re.ASCII)
_OF_USER = r"(?:login|account)\s+"
_LOGIN_HEAD = rf"(?:machine\s+[\w-]+\.\S+|(?:machine\s+\S+|default)(?=\s+{_OF_USER}))(?:\s+{_OF_USER}\S+)*\s+"
_SETS = r"setenv\s+\w*|config(?:ure)?\s+(?:set|(?:--(?:set|add|global|system|local)\s+)+)\s*[\w.:/\-]*"
_OPTION_HEAD = regex(rf"(?:^|[\s'\"=(\[,])--?[\w.\-]*$|\b(?:{_SETS}|{_LOGIN_HEAD})$", re.ASCII)
_KEY_FORMS = (
    (_OPTION_HEAD, _OPTION_SEPARATOR),
    (_PAIR_HEAD, _PAIR_SEPARATOR),
    (_ITEM_HEAD, _ITEM_SEPARATOR),
    (_TAG_HEAD, _TAG_SEPARATOR),
)
"""What is before a key that no sign of equality follows, and what is between it and its value."""
_HEAD_LENGTH, _JUDGED = 64, 200
_IN_PROSE = regex(
    r"(?:[ ](?:key|code|phrase|id))?(?:[ ](?:for|of)[ ](?:user[ ])?[\w.@\-]{1,64})?"
    r"(?::|[ ](?:is|was)(?:[ ](?:re)?set[ ]to|[ ]now|:)?"
    r"|(?<=use token)|(?<=using token)|(?<=with token)"
    r"|(?:(?<=password)(?<!\Spassword)|(?<=pw)(?<!\Spw))"
    r"(?=[ \t]+'[^\s']|[ \t]+[^\s'\"(\[<{$%\-][^\s'\"]*[ \t]*(?![^\r\n])))[ \t]+"
    r"(?:['\"`](?P<quoted>[^\s'\"`]{4,})['\"`]|(?P<bare>[^\s'\"`]{6,}))",
    re.ASCII | re.IGNORECASE,
)
"""What follows a key in `the password for bob is X`, and a password that is the last word of a line."""
_IN_BRACKETS = regex(r"(?<!\w)\w+ ?[(\[]['\"]?(?P<bare>[^\s'\"()\[\],=]{6,})['\"]?[)\]]", re.ASCII)
"""A key with its value in `password(X)`; what is called with one is no key: `get_password(X)`."""
_NUMBER = regex(r"\d{1,12}(?:\.\d{1,12})?(?:e\d{1,3})?", re.ASCII)
_LINE_NUMBER = regex(r"\d+:")
_REFUSAL = regex(
    r"(?:permission|no|not|expired|invalid|denied|missing|failed|unknown|unauthori[sz]ed|rejected|revoked|required"
    r"|incorrect|lifetime|all|cannot|could|unable|wrong|bad|replayed|rewound|error|input/output|is|was|has|does"
    r"|must|should|file|cache|socket|helper|plugin|protocol|server|timed)(?=[\s.,;:)\]]|$)",
    re.IGNORECASE,
)
"""What follows in a message about a credential."""

_LINE_END_OR_QUOTE = regex(r"((?:\\+r)?\\+n|['\"])")
_FOLD = regex(r"(?:\\+t)*")
"""Ends of lines as programs write them in a text of one line, and tabs."""

_LOGIN = regex(
    r"((?<![\w.\-])auth\\*['\"]?[ ]*[=:][ ]*\\*['\"]?|\bbasic(?:[ ]|%20)+)"
    r"([A-Za-z0-9+/]{8,}={0,2})(?![\w+/=])",
    re.ASCII | re.IGNORECASE,
)
"""What may be a user and a password in base64, as the configuration of Docker has them."""

_TABLE = tables_of("jobtui.model", "secrets")


def _form(pattern: str) -> str:
    """A pattern of the table with its parts."""
    for name, part in {**_TABLE["parts"], "KEY": secret_words.SECRET_WORDS}.items():
        pattern = pattern.replace(f"<{name}>", part)
    return pattern


_FORM = regex(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(_form, _TABLE['forms'].values()))})", re.ASCII)
_OPTIONS = [
    (
        regex(rf"\b{program.rstrip()}\b", re.IGNORECASE),
        regex(option % r"(?:\\*['\"]?[\s,=]+)?(?P<quote>\\*['\"])?"),
    )
    for program, option in _TABLE["options"].items()
]
_OPTION = regex(r"(?<=[ '\"])(?:--?(?=[a-zA-Z])|/(?=g?p:))")
_COMMAND_LENGTH = 400
_WORD = regex(r"[^\s'\"]+")
_QUOTE = regex(r"(?:[bBuUrRfF]{1,2}|\$)?(?P<quote>\\*(?:\'\'\'|\"\"\"|['\"]))")
_ENDS_LIST_ITEM = regex(r"\\*['\"](?:[ ]*(?:$|[)\]}]|,[ ]*[bBuU]?\\*['\"])|\s*\{?\s*(?:exp_)?send\b)")
_INSIDE = r",(?!\s|$|[\w.\-]+[=:]|[bBuU]?\\*['\"])|[)\]}](?![\s,)\]}:;.'\"\\]|$)"
"""A comma or a bracket that is no end of a value without quotes."""
_BARE = regex(
    r"(?:[^\s'\"&;,)\]}\\%]|(?<=\w)\\*['\"](?=\w)|[&;](?=[^\s'\"&;,=]+(?:[\s'\"&;,]|$))"
    rf"|{_INSIDE}"
    r"|\\ (?=\S)|\\(?!\\{0,8}[nrt'\"])|%(?!26|22))+"
)
_MORE_WORDS = regex(
    r"(?:(?:[ \t]+(?!#|--?\w|[\w.\-]+[=:]|[|&<>])|\\{1,8}n(?=[^\s\\'\"=:]+(?:\\|['\"]|$)))"
    rf"(?:[^\s'\"\\,;)\]}}]|{_INSIDE})+)+"
)
"""The words after the first of a secret without quotes, up to the next key, option or comment."""
_TOKEN = regex(r"[\w./+=\-]{4,}", re.ASCII)
_MASKED = regex(rf"{re.escape(secret_words.MASK)}(?![\w*])")
_SHELL_NAME = regex(r"(?<![\w\\])\\*['\"](?:--[\w.\-]+|[A-Z\d_]+)$", re.ASCII)
_SHELL_REST = regex(r"[^'\"=\n\\]*(?=\\*['\"])")
"""A name in quotes, as a shell writes it with its value, and the words after the first of that."""
_LINE_HEAD = regex(r"(?:^|\n|:\d+:\w+ |\\n)['\"]?[ \t\-]*(?:export |set )?[\w.\-]*$", re.ASCII)
"""What is before a key that is the first word of a line or of the message of a log record."""
_SCHEME = regex(r"(?:bearer|basic|digest|token|negotiate)[ ]+[^\s'\"]", re.IGNORECASE)
_REST_OF_HEADER = regex(r"[^\r\n'\"\\]*")
_REST_OF_LINE = regex(r"[^\r\n]*")
_AGENT_VALUE = regex(r"[A-Za-z0-9]*", re.ASCII)
_AGENT_PREFIX = regex(rf"[A-Za-z0-9]{{0,{PREFIX_LENGTH}}}{secret_words.CUT}?", re.ASCII)
_IN_LOGIN = r"['\"](?=[\w@])"
_NO_SCHEME = r"(?!(?:(?<=ttp:)|(?<=tps:))//)"
_PASSWORD = regex(
    rf"(?:(?![\[/])(?:[^\s'\":\\]|\\*{_IN_LOGIN}){{0,64}}:(?!\d{{1,5}}(?:[/?#'\"]|$)){_NO_SCHEME}"
    rf"(?P<own>(?:(?!https?://)[^\s'\"]|{_IN_LOGIN}){{1,256}})|(?P<user>(?=[A-Za-z_\-]*\d)[\w\-]{{20,}}))@(?!sha\d+:)",
    re.ASCII,
)
"""The password in an address, up to the last @ of the word, or the token that is its user. A number is a
port; what follows an @ may be the digest of an image.
"""
_CUT_PASSWORD = regex(
    rf"(?!\[)(?:[^\s/?#'\":\\]|\\*{_IN_LOGIN}){{0,64}}:(?!\d{{1,5}}(?!\w)|[{{$<%*[]|port\b){_NO_SCHEME}"
    rf"(?P<own>(?:[^\s'\"\\,)\]}}]|{_INSIDE}|\\*{_IN_LOGIN})+)",
    re.IGNORECASE,
)
"""What can be no port where the rest of an address, with its @, was cut off."""
_HAS_TAG = regex(r"(?:docker[\w\-]*|file|git|gs|library|oci[\w\-]*|oras|s3|shub|ssh)$", re.IGNORECASE)
"""Addresses in which something else follows a colon."""
_CREDENTIAL = regex(r"[A-Za-z0-9._~+/=\-]{12,}")
_TORN = regex(
    r"(?P<forwarded>[^\n]{0,400}?\bsrj-[sp]-[A-Za-z0-9]{8} )?"
    r"(?:(?P<tail>(?=[A-Za-z]*\d)[A-Za-z0-9]{8,32})(?=\\*'(?:[\s,)}\]]|\\n|$))"
    r"|(?P<key>(?:\w{0,40}\\*'?(?:=|: )|(?(forwarded) ?|(?!)))\\*')"
    rf"(?P<value>[A-Za-z0-9]{{{secret_words.FULL_ID_LENGTH}}})(?=\\*'))",
    re.ASCII,
)
"""The end of a secret whose key, or part of it, was cut off: forwarded output is cut anywhere."""
_PEM_END = regex(r"-----END [A-Z ]{0,40}PRIVATE KEY-----")
_STOP = regex(rf"(?<!\\)\\*(?P<quote>['\"])|{_SNIP}|\n|\r|{_TIME}")
_JOINED = regex(r"(?:\\{1,4}'|\\*\"\\*'\\*\"|(?<='))(?P<quote>\\*')")
_CUT_GROUP = regex(r"[^\r\n]*(?:\r?\n(?=[ \t\"'\])}])[^\r\n]*)*")
"""The rest of a line, and the lines after it that are indented or go on with a quote or a bracket."""
_OPENERS = {"{": "}", "[": "]", "(": ")"}
_GROUP_PART = regex(rf"(?<!\\)\\*(?P<quote>['\"])|(?P<open>[{{\[(])|[}}\])]|(?P<record>{_TIME})")


_Span = tuple[int, int]
"""Where a value begins and ends; reading goes on at its end. It is empty where there is none."""


def without_values_below(text: str) -> str:
    """`text` with the values masked on lines below their keys, also where line ends are written as `\\n`."""
    text = SecretBlocks().hide(text)
    parts = _LINE_END_OR_QUOTE.split(text) if "\\n" in text else []
    for at in range(0, len(parts), 2):
        if not at or parts[at - 1] in ("'", '"'):
            blocks = SecretBlocks()
        fold = _FOLD.match(parts[at])[0]  # type: ignore[index]
        parts[at] = fold + blocks.hide("\t" * len(fold) + parts[at][len(fold) :])[len(fold) :]
    return "".join(parts) or text


def masked(text: str) -> str:
    """`text` with every secret after a key masked. Reads it once, from one possible secret to the next."""
    low = text.replace("\u0130", "i").lower()  # the one character whose lower case is longer than itself
    parts: list[str] = []
    done = at = 0
    while (begin := _ANY_START.search(low, at)) and (found := _START.match(low, begin.start())):
        find = _FINDS.get(found.lastgroup or "", _find_other)
        start, at = find(text, found)
        if start < at:
            name = text[found.start() : start] if found["key"] else found[0]
            parts += text[done:start], replacement(text[start:at], name)
            done = at
    return "".join(parts) + text[done:] if parts else text


def without_base64(text: str) -> str:
    """`text` without users and passwords in base64, or the mask where all of it is padded base64."""

    def shown(found: re.Match[str]) -> str:
        login = secret_words.decoded(found[2])
        is_login = ":" in login[:-1] and login.isascii() and login.isprintable()
        return found[1] + (secret_words.MASK if is_login else found[2])

    is_padded = text[-1:] == "=" and secret_words.KEY_END.fullmatch(text)
    return secret_words.MASK if is_padded else _LOGIN.sub(shown, text)


def without_torn(text: str) -> str:
    """`text` with the end of a torn secret masked, at its start or at the start of output forwarded in it."""
    found = _TORN.match(text)
    if found is None or (found["key"] and found["key"].strip("\\'=: ").lower().endswith(("opid", "hash"))):
        return text
    group = "tail" if found["key"] is None else "value"
    return text[: found.start(group)] + secret_words.MASK + text[found.end(group) :]


def without_forms(text: str) -> str:
    """`text` with the secrets masked that are known by their form."""
    return _FORM.sub(lambda one: (one[one.lastindex] if one.lastindex else "") + secret_words.MASK, text)


def without_options(text: str) -> str:
    """`text` with the secrets masked that follow short options of the programs that take them so."""
    parts: list[str] = []
    done = 0
    for found in _OPTION.finditer(text):
        start = found.start()
        for program, option in _OPTIONS:
            near = text[max(done, start - _COMMAND_LENGTH) : start]
            if start >= done and (before := option.match(text, start)) and _runs(program, parts, near):
                at, quote = before.end(), before["quote"]
                end = _end_of_joined(text, at, quote) if quote else end_of(_WORD, text, at)
                if start < at < end:
                    parts += text[done:at], secret_words.MASK
                    done = end
    return "".join(parts) + text[done:]


def _runs(program: re.Pattern[str], parts: list[str], near: str) -> bool:
    """Whether an option is one of a program, by what is shown before it."""
    shown = ("".join(parts[-_COMMAND_LENGTH:]) + near)[-_COMMAND_LENGTH:]
    return program.search(re.split(r"[\n|;&]", shown)[-1]) is not None


def replacement(value: str, name: str) -> str:
    if value in _KEPT_VALUES or (_NUMBER.fullmatch(value) and secret_words.COUNT.search(name)):
        return value
    low = name.lower()
    if ("private" in low and _ADDRESS.fullmatch(value)) or (_OF_PATH.search(low) and _PATH.match(value)):
        return value
    if _AGENT_KEY.search(name):
        if _AGENT_PREFIX.fullmatch(value):
            return value
        if found := _AGENT_VALUE.match(value)[0]:  # type: ignore[index]
            return found[:PREFIX_LENGTH] + secret_words.CUT
    return secret_words.MASK


def _find_other(text: str, found: re.Match[str]) -> _Span:
    """What follows the begin of an agent's id or of an address, `bearer`, a private key's head."""
    at = found.end()
    if found["url"]:
        password = _PASSWORD.match(text, at)
        if password is None and _HAS_TAG.search(text[max(0, at - _HEAD_LENGTH) : found.start()]) is None:
            password = _CUT_PASSWORD.match(text, at)
        name = "user" if password is None or password["own"] is None else "own"
        return (at, at) if password is None else password.span(name)
    if found["pem"]:
        at += text.startswith("\n", at)
        closing = _PEM_END.search(text, at)
        end = closing.start() if closing else len(text)
    else:
        end = end_of(_AGENT_VALUE if found["agent"] else _CREDENTIAL, text, at)
    return at, end


def _find_key(text: str, found: re.Match[str]) -> _Span:
    """The value of the key at `found`; nothing when no value follows, because then it is prose."""
    word_end = end_of(_WORD_END, text, found.end())
    separator = _SEPARATOR.match(text, word_end)
    if separator is None:
        return _find_after_option(text, found.start(), word_end)
    at = separator.end()
    if separator["quote"] is None:
        is_file = "." in text[found.start() : word_end] and not text.endswith(".", found.start(), word_end)
        if is_file and _LINE_NUMBER.match(text, at):  # a source file as log lines name them
            return word_end, word_end
        if _ENDS_LIST_ITEM.match(text, at) or (separator[0].endswith(": ") and _REFUSAL.match(text, at)):
            return at, at
    start, end = _value(text, at, found[0])
    is_line = ":" in separator[0] or separator[0][-1].isspace()  # else a shell takes the next word as another
    if separator["quote"] or _QUOTE.match(text, at) or text[start:end] in _KEPT_VALUES:
        return start, end
    head = text[max(0, found.start() - _HEAD_LENGTH) : found.start()]
    end = end_of(_MORE_WORDS, text, end) if is_line and _LINE_HEAD.search(head) else end
    if not is_line and _SHELL_NAME.search(f"{head}{text[found.start() : word_end]}"):
        end = end_of(_SHELL_REST, text, end)
    return start, end


def _find_unsure(text: str, found: re.Match[str]) -> _Span:
    """The value of a name that may be of a secret; what looks like none is read on, it may hold other keys.

    That of a session or a cookie is one random word; that of another is no word, but for `pass =` on a line.
    """
    begin = max(0, found.start() - _HEAD_LENGTH)
    # only a part is judged first: in a text of nothing else each value would be as long as the text
    near = text[begin : found.end() + _JUDGED].replace("\u0130", "i")
    again = _START.match(near.lower(), found.start() - begin)
    start, end = _find_key(near, again) if again else (0, 0)
    value, name = near[start:end], text[found.start() : found.end()]
    if found["session"]:
        is_own = secret_words.is_random(value.partition(" ")[0])
    elif WORDLIKE.fullmatch(value):
        is_ini = name.lower() == "pass" and _LINE_HEAD.search(near, 0, found.start() - begin) is not None
        is_own = is_ini and value.isalpha() and not near[end:].partition("\n")[0].strip(" \t\r\"'")
    else:
        is_own = name[0] != "_" or (name.isupper() and _TOKEN.fullmatch(value) is not None)
    if not is_own:
        return found.end(), found.end()
    start, end = _find_key(text, found)
    return start, start + len(text[start:end].partition(" ")[0]) if found["session"] else end


def _find_after_option(text: str, start: int, word_end: int) -> _Span:
    """The value after `--key` in a command, its argument list, or of the pair `('key', 'value')`."""
    head = text[max(0, start - _HEAD_LENGTH) : start]
    for before, between in _KEY_FORMS:
        if before.search(head) and (separator := between.match(text, word_end)):
            if between is _TAG_SEPARATOR:
                return separator.end(), text.index("<", separator.end())
            return _value(text, separator.end(), text[start:word_end])
    if prose := _IN_PROSE.match(text, word_end) or _IN_BRACKETS.match(text, start):
        group = prose.lastgroup or ""
        value = prose[group].rstrip(".,;:!?)]}*")
        if not WORDLIKE.fullmatch(value):
            begin = prose.start(group)
            return begin, begin + len(value)
    return word_end, word_end


def _value(text: str, at: int, key: str) -> _Span:
    start = end_of(_QUOTE, text, at)
    if _MASKED.match(text, start):
        return start, start + len(secret_words.MASK)  # what was masked ended before the sign that follows
    if quote := _QUOTE.match(text, at):
        return _quoted(text, quote)
    is_header = key.lower() in ("authorization", "cookie")
    if text[at : at + 1] in _OPENERS:
        end = _end_of_bare(text, _end_of_group(text, at))
    elif is_header or _SCHEME.match(text, at):
        is_digest = text[at : at + 6].lower() == "digest"  # its parts are in quotes
        end = end_of(_REST_OF_LINE if is_digest else _REST_OF_HEADER, text, at)
    else:
        end = _end_of_bare(text, at)
    return at, end


def _quoted(text: str, quote: re.Match[str]) -> _Span:
    if quote["quote"].endswith(("'''", '"""')):
        end = text.find(quote["quote"], quote.end())
        return quote.end(), end if end >= 0 else len(text)
    return quote.end(), _end_of_joined(text, quote.end(), quote["quote"])


def _end_of_joined(text: str, start: int, quote: str) -> int:
    """Where a quoted value ends, with the pieces a shell would join to it, and where to go on."""
    end, resume = _end_of_quoted(text, start, quote)
    while more := _JOINED.match(text, resume):
        end, resume = _end_of_quoted(text, more.end(), more["quote"])
    return end


def _end_of_quoted(text: str, start: int, quote: str) -> tuple[int, int]:
    """Where a quoted value ends and where to go on; at a cut, the next record or the line's end if unclosed.

    `quote` is the quote with the backslashes before it, of which there are more at each level of escaping.
    """
    level = len(quote) - 1
    for stop in _STOP.finditer(text, start):
        if stop["quote"] is None:
            return stop.start(), stop.end() if stop[0] == _SNIP else stop.start()
        backslashes = len(stop[0]) - 1
        if (
            stop["quote"] == quote[-1]
            and backslashes >= level
            and (backslashes - level) % (2 * level + 2) == 0
            and not (backslashes > level and text[stop.end() : stop.end() + 1].isalnum())
        ):
            return stop.end() - len(quote), stop.end()
    return len(text), len(text)


def _end_of_group(text: str, at: int) -> int:
    """Where a bracketed value ends; without its bracket, where the lines end that may belong to it."""
    begin = at
    expected: list[str] = []
    while part := _GROUP_PART.search(text, at):
        at = part.end()
        if part["quote"]:
            at = _end_of_quoted(text, at, part[0])[1]
        elif part["open"]:
            expected.append(_OPENERS[part[0]])
        elif part["record"]:
            return part.start()
        elif not expected or expected.pop() != part[0]:
            break
        elif not expected:
            return at
    return end_of(_CUT_GROUP, text, begin)


def _end_of_bare(text: str, at: int) -> int:
    end = end_of(_BARE, text, at)
    while text[at - 3 : at - 2] != "%" and text[end : end + 3] in ("%22", "%26"):
        end = end_of(_BARE, text, end + 3)  # a sign of the value, as what is around it is not encoded
    glued = _RECORD.search(text, at, min(end + _RECORD_LENGTH, len(text)))
    return glued.start() if glued else end


_FINDS = {"key": _find_key, "session": _find_unsure, "unsure": _find_unsure}
STEPS = (without_base64, without_values_below, without_torn, without_forms, without_options, masked)
"""In their order: what the first of them masks tells the last where a secret begins."""
