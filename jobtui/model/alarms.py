"""What the user wants to happen when a job newly needs a person. Nothing, unless it is configured."""

from typing import NamedTuple

KIND = "alarm"
"""The kind under which the user's command is listed among the sources, to say when it fails."""
LEAST_REST_S = 10.0


class Alarms(NamedTuple):
    """Whether the terminal rings, the command that is run, and the least seconds between two of these."""

    bell: bool = False
    command: tuple[str, ...] = ()
    rest_s: float = 60.0

    def __bool__(self) -> bool:
        """Whether anything is to happen."""
        return self.bell or bool(self.command)


def parse_alarms(table: object) -> Alarms:
    """What a table of the configuration file asks for. Raises ValueError that says what is wrong."""
    if not isinstance(table, dict):
        raise ValueError("expected a table of bell, command, rest_s")
    if unknown := set(table) - set(Alarms._fields):
        raise ValueError(f"{min(unknown)}: unknown; there are {', '.join(Alarms._fields)}")
    bell, rest_s = table.get("bell", False), table.get("rest_s", Alarms().rest_s)
    if not isinstance(bell, bool):
        raise ValueError("bell: expected true or false")
    if isinstance(rest_s, bool) or not isinstance(rest_s, int | float) or not rest_s >= LEAST_REST_S:
        raise ValueError(f"rest_s: expected seconds, {LEAST_REST_S:g} at least")
    return Alarms(bell, _words(table.get("command", [])), float(rest_s))


def _words(command: object) -> tuple[str, ...]:
    """The program and its arguments; no shell reads them."""
    if not isinstance(command, list) or not all(isinstance(word, str) and word for word in command):
        raise ValueError('command: expected a list of words, such as ["notify-send", "jobtui"]')
    if any("\0" in word for word in command):
        raise ValueError("command: a word holds a zero byte")
    return tuple(command)
