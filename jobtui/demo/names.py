"""Ids as Sirepo makes them: characters of base 62. Prefixes can be made few, so that they clash."""

import random

from jobtui.model.ids import PREFIX_LENGTH

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
UID_LENGTH = 8
KEY_LENGTH = 32


class Names:
    """Draws ids, never the same one twice."""

    def __init__(self, rng: random.Random, prefixes: int | None) -> None:
        self._rng = rng
        self._used: set[str] = set()
        self._prefixes = None if prefixes is None else [self._draw(PREFIX_LENGTH) for _ in range(prefixes)]

    def uid(self) -> str:
        """A user's id."""
        return self._draw(UID_LENGTH)

    def simulation(self) -> str:
        """A simulation's id."""
        return self._draw(UID_LENGTH)

    def key(self) -> str:
        """An agent's or op's full id. Its first four characters may clash with another's."""
        if self._prefixes is None:
            return self._draw(KEY_LENGTH)
        return self._rng.choice(self._prefixes) + self._draw(KEY_LENGTH - PREFIX_LENGTH)

    def token(self) -> str:
        """A secret of the same form as a key."""
        return self._draw(KEY_LENGTH)

    def hex(self, length: int) -> str:
        """Hexadecimal digits, as of a container or an md5."""
        return f"{self._rng.getrandbits(length * 4):0{length}x}"

    def _draw(self, length: int) -> str:
        while True:
            text = "".join(self._rng.choices(ALPHABET, k=length))
            if text not in self._used:
                self._used.add(text)
                return text
