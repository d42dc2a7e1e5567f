"""What is wrong with settings, in lines for whoever has to mend them."""


class ConfigError(Exception):
    """Settings are wrong. Each of `lines` is one mistake: where it is, and what is right."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        super().__init__("\n".join(lines))
