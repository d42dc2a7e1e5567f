"""The user's wishes for the dashboard: keys, columns, colours. Imported only if the file has any."""

from collections.abc import Iterable, Iterator

from jobtui.actions import ACTIONS, NoSuchKey, ScreenName, clashes, key_named, unreachable
from jobtui.config.file import ConfigFile, Keys, leaves
from jobtui.grammar import nearest
from jobtui.model.settings import ANYWHERE, Appearance, KeyWish
from jobtui.render.columns import JOB_COLUMNS
from jobtui.render.styles import mistake_in_style, style_names

OF_COLUMNS = ("jobs", "sort", "reverse")


def with_personal(looks: Appearance, file: ConfigFile, profile: str | None) -> Appearance:
    wishes = tuple(_wishes(file, profile))
    # Keys with two meanings on one screen, and actions that must keep a key
    for key, screen, first, second in clashes(wishes):
        wish = next(wish for wish in reversed(wishes) if wish.action in (first, second) and key in wish.keys)
        file.wrong(_keys_of(file, wish), f'"{key}" means both {first} and {second} on {screen}')
    for name in unreachable(wishes):
        wish = next(wish for wish in wishes if wish.action == name)
        file.wrong(_keys_of(file, wish), f"{name} needs a key")
    looks = looks._replace(keys=wishes, colors=dict(_colors(file, profile)))
    return _with_columns(looks, file, profile)


def _wishes(file: ConfigFile, profile: str | None) -> Iterator[KeyWish]:
    for keys, table, holds in file.tables("keys", profile):
        for name, value in table.items():
            if isinstance(value, dict) and name in {screen.value for screen in ScreenName}:
                found = [_wish(file, (*keys, name, one), name, one, it) for one, it in value.items()]
            else:
                found = [_wish(file, (*keys, name), ANYWHERE, name, value)]
            yield from (wish for wish in found if wish is not None and holds)


def _wish(file: ConfigFile, at: Keys, screen: str, action: str, value: object) -> KeyWish | None:
    names = {one.name for one in ACTIONS if screen in (ANYWHERE, *one.screens)}
    if action not in names:
        where = f" on {screen}" if screen else ""
        file.wrong(at, f'no action "{action}"{where}{nearest(action, names)}', is_key=True)
        return None
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        file.wrong_kind(at, "a key or a list of keys", value)
        return None
    found = []
    for number, text in enumerate(texts):
        try:
            found.append(key_named(text))
        except NoSuchKey as error:
            file.wrong((*at, number), str(error))
    return KeyWish(screen, action, tuple(found), file.origin(at))


def _keys_of(file: ConfigFile, wish: KeyWish) -> Keys:
    """Where a wish stands: the keys of the last that has its name, its screen and its line."""
    for keys in file.positions.values:
        if keys[-1] == wish.action and "keys" in keys and file.origin(keys) == wish.origin:
            return keys
    return ("keys",)


def _colors(file: ConfigFile, profile: str | None) -> Iterator[tuple[str, str]]:
    for keys, table, holds in file.tables("colors", profile):
        for at, style in leaves(keys, table):
            name = ".".join(map(str, at[len(keys) :]))
            if name not in style_names():
                file.wrong(at, f'no colour is called "{name}"{nearest(name, style_names())}', is_key=True)
            elif not isinstance(style, str):
                file.wrong_kind(at, "a text", style)
            elif mistake := mistake_in_style(style):
                file.wrong(at, mistake)
            elif holds:
                yield name, style


def _with_columns(looks: Appearance, file: ConfigFile, profile: str | None) -> Appearance:
    for keys, table, holds in file.tables("columns", profile):
        for name in table:
            if name not in OF_COLUMNS:
                file.wrong((*keys, name), f'unknown key "{name}"{nearest(name, OF_COLUMNS)}', is_key=True)
        columns = tuple(_columns(file, (*keys, "jobs"), table.get("jobs", [])))
        sort = next(iter(_columns(file, (*keys, "sort"), [table["sort"]])), None) if "sort" in table else None
        reverse = table.get("reverse", False)
        if not isinstance(reverse, bool):
            file.wrong_kind((*keys, "reverse"), "true or false", reverse)
        elif holds:
            looks = looks._replace(
                columns=columns or looks.columns,
                sort=sort if sort is not None else looks.sort,
                reverse=reverse if "reverse" in table else looks.reverse,
            )
    return looks


def _columns(file: ConfigFile, at: Keys, names: object) -> Iterable[str]:
    known = [column.key for column in JOB_COLUMNS]
    if not isinstance(names, list):
        file.wrong_kind(at, "a list of columns", names)
        return
    for number, name in enumerate(names):
        if name in known and name not in names[:number]:
            yield name
        elif name in known:
            file.wrong((*at, number), f'"{name}" occurs twice')
        else:
            near = nearest(str(name), known) or f"; expected one of {', '.join(known)}"
            file.wrong((*at, number), f'no column "{name}"{near}')
