"""Texts that look like filters, for properties that hold of any text."""

from hypothesis import strategies as st

_PIECES = st.sampled_from(
    [
        *(
            "status:failed",
            "user:vn9m",
            "app:",
            "srw",
            ",warp",
            "age<10m",
            "%>=90",
            "host!=v3",
            "model:~Anim",
            "name:",
        ),
        *(
            " ",
            "  ",
            "-",
            "not ",
            " or ",
            " and ",
            "(",
            ")",
            '"',
            '"a b"',
            "\\",
            ":",
            "=",
            "~",
            "since:14:00",
            "quasi:yes",
        ),
        *(
            "EPRSqtUW-IVh7w74d-animation",
            "or",
            "and",
            "not",
            "started>2026-11-20T14:00Z",
            "flag:stuck",
            "dur:1h30m",
        ),
    ]
)
ANY_FILTER_TEXT = st.lists(_PIECES | st.text(max_size=3), max_size=10).map("".join)
