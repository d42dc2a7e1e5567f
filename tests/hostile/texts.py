"""The texts, and how to see that one got through."""

import unicodedata
from collections.abc import Iterator, Mapping

TEXTS: Mapping[str, str] = {
    "markup": "[bold red]markup[/] [/nope] [@click=app.quit]x[/] [link=http://e.example]y[/link]",
    "csi": "\x1b[31mred\x1b[0m \x1b[2J\x1b[H\x1b[999;999H \x1b[?1049l\x1b[?1000h",
    "osc": "\x1b]0;title\x07 \x1b]8;;http://e.example\x1b\\link\x1b]8;;\x1b\\ \x1b]22;wait\x1b\\",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4K\x07 \x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\",
    "dcs": "\x1bP$q q\x1b\\ \x1b_apc\x1b\\ \x1b^pm\x1b\\ \x1bX sos\x1b\\ \x1bc \x1b7\x1b8\x1b#8",
    "c1": "\x9b31m \x9d52;c;aGk=\x9c \x90q\x9c \x85 \x8d \x84",
    "cut off": "an escape that does not end \x1b[38;2;",
    "bidi": "left \u202eright-to-left\u202c \u2066isolate\u2069 \u2067x\u200f\u200e \u202a\u202b",
    "arabic and hebrew": "مرحبا بالعالم שלום עולם \u0661\u0662\u0663",
    "nul": "nul\x00nul bell\x07 backspace\x08\x08\x08 delete\x7f",
    "whitespace": "tab\tcr\rlf\ncrlf\r\nvt\x0bff\x0c nbsp\xa0 ls\u2028 ps\u2029 nel\x85 em\u2003",
    "cjk": "表格ひらがな한국어" * 4,
    "half width": "ｶﾀｶﾅ ＦＵＬＬ １２３ ￥",
    "emoji": "👩\u200d👩\u200d👧\u200d👦 🇨🇭 👍🏽 ❤\ufe0f ☎\ufe0e 🏴\U000e0067\U000e007f 1\ufe0f\u20e3",
    "combining": "e" + "\u0301" * 200 + "\u0300\u0300 a\u20dd\u0e33\u0e49",
    "only marks": "\u0301\u0302\u0303",
    "zero width": "a\u200bb\u200cc\u200dd\ufeffe\u2060f\u00adg\u180eh\u115fi\u3164j\u2800k",
    "surrogates": "\ud800 lone \udfff \udcff\udc80 escaped",
    "private": "\ue0b0 \uf8ff \U000f0000 \uffff \U0010ffff \ufffe",
    "long": "x" * 10_000,
    "long and wide": "表" * 5_000,
    "empty": "",
    "blank": " ",
    "percent": "%s %(x)s {0} {x!r} $HOME `id` ${x} %n",
    "json": '{"a": [1, "\\u0000"]} \\ " \' ,;',
    "formula": '=cmd|" /C calc"!A0',
    "secret": "password=hunter2 \x1b[8mhidden\x1b[0m",
    "everything": "[/x]\x1b[2J\u202e\x00表\u0301\ud800👩\u200d👧\t" * 3,
}
"""One for each way to do harm, by what it is."""

FEW = (
    "markup", "csi", "osc", "c1", "bidi", "nul", "whitespace", "cjk", "combining", "surrogates", "long",
    "empty", "secret", "everything",
)  # fmt: skip
"""Those that are tried where each takes its time; the others would tell nothing more there."""

SECRET = "hunter2"
"""What must be seen nowhere."""

_WIDE = frozenset("WF")


def is_raw(char: str) -> bool:
    """Whether a character should not reach a terminal; by Unicode, not by what jobtui thinks of it."""
    category = unicodedata.category(char)
    return category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and char != "\ufffd"


def cells(text: str) -> int:
    """Cells a terminal takes for text without raw characters, by Unicode's own tables."""
    return sum(map(_size, text))


def _size(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def piles_in(text: str) -> Iterator[str]:
    """Runs of more than five combining marks, which climb into other lines."""
    run = ""
    for char in f"{text} ":
        if _size(char) == 0:
            run += char
        else:
            if len(run) > 5:
                yield run
            run = ""


def faults_in(line: str) -> list[str]:
    raw = sorted({char for char in line if is_raw(char)})
    return [
        *(f"raw {char!a}" for char in raw),
        *(f"a pile of {len(pile)} marks" for pile in piles_in(line)),
        *(["a secret"] if SECRET in line else []),
    ]
