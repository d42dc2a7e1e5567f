"""`mcp`: answers an assistant over the Model Context Protocol, on standard input and output. Reads only.

Each answer is what a command prints with `--json`, between two marks that are made up for it, and labelled as
data of others. One question at a time; the sources are read for each.
"""

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING, Any

from jobtui.commands import runner
from jobtui.commands.context import Context, make_context
from jobtui.commands.reader import configured, no_source, within
from jobtui.commands.streams import Exit, complain
from jobtui.config import ConfigError
from jobtui.config.settings import Effective
from jobtui.grammar import COMMAND_BY_NAME, Invocation
from jobtui.model.health import contained
from jobtui.model.secrets import mask_text
from jobtui.model.tables import tables_of

if TYPE_CHECKING:
    from mcp.server import Server

ANSWER_CHARACTERS = 60_000
"""A longer answer is cut, with a note."""
ANSWER_S = 120.0
LINES, MOST_LINES = 100, 500
MOST_TEXT = 2_000
_TEXT = {"type": "string", "minLength": 1, "maxLength": MOST_TEXT}
_TABLE = tables_of("jobtui.commands", "mcp")
LABEL: str = _TABLE["label"]
OVERVIEWS: Sequence[str] = _TABLE["overviews"]
TOOLS: Mapping[str, Mapping[str, Any]] = _TABLE["tools"]


def asked_of(tool: str, given: Mapping[str, Any]) -> Invocation:
    """The command line of a question. Raises ValueError if it is invalid."""
    if tool not in TOOLS:
        raise ValueError(f"unknown tool {tool!r:.50}, expected one of {', '.join(TOOLS)}")
    if unknown := given.keys() - TOOLS[tool]["properties"].keys():
        raise ValueError(f"{tool} does not take {', '.join(sorted(unknown))!r:.100}")
    if missing := [name for name in TOOLS[tool]["needed"] if name not in given]:
        raise ValueError(f"{tool} needs {', '.join(missing)}")
    texts = {name: value for name, value in given.items() if name not in ("brief", "lines")}
    if not all(isinstance(one, str) and 0 < len(one) <= MOST_TEXT and one != "-" for one in texts.values()):
        raise ValueError(f"expected texts of 1 to {MOST_TEXT} characters")
    command = texts["of"] if tool == "overview" else tool
    if command not in COMMAND_BY_NAME or (tool == "overview" and command not in OVERVIEWS):
        raise ValueError(f"expected one of {', '.join(OVERVIEWS)}")
    argument = COMMAND_BY_NAME[command].argument
    word = texts.get("thing") or texts.get("id", "")
    if argument is not None and argument.required and not word:
        raise ValueError(f"{command} needs an id")
    flags = {"plain": "true", "brief": "true"} if given.get("brief") is True else {"json": "true"}
    if tool == "logs":
        lines = given.get("lines", LINES)
        flags["lines"] = str(min(MOST_LINES, max(1, lines if isinstance(lines, int) else LINES)))
        flags |= {"grep": re.escape(texts["text"])} if "text" in texts else {}
    words = (word,) if word and argument is not None else ()
    since = {"since": (texts["since"],)} if "since" in texts else {}
    return Invocation(COMMAND_BY_NAME[command], words, since, flags)


def fenced(text: str, said: str, notes: str = "") -> str:
    """An answer with its label and the text of stderr, between marks that are made up for it."""
    mark = secrets.token_hex(8)
    found = ""
    for name, one, most in (("data", text, ANSWER_CHARACTERS), ("notes", notes, MOST_TEXT)):
        cut = f"\n(cut: {len(one) - most:,} more characters; ask for less)" if len(one) > most else ""
        found += f"\n<{name} {mark}>\n{one[:most]}\n</{name} {mark}>{cut}" if one or name == "data" else ""
    return f"{said}\n{LABEL}{found}"


async def answered(context: Context, asked: Invocation) -> tuple[str, bool]:
    """The output of a command, and whether it failed; run in this process, and nothing is printed."""
    with contained(f"answering {asked.command.name}") as answering:
        try:
            async with asyncio.timeout(ANSWER_S):
                given = {name: Effective(values, name) for name, values in asked.settings.items()}
                config = context.config._replace(settings={**context.config.settings, **given})
                printed: list[str] = []
                made = make_context(asked, config, context.open_dashboard)
                made = made._replace(replay=context.replay, write=printed.extend)
                run = runner(asked.command.name)
                body: Any = getattr(run, "__wrapped__", None)  # reads sources, and is run in this loop
                with redirect_stderr(StringIO()) as beside:  # one question at a time
                    if body is not None:
                        code = await within(made, configured(made), body)
                    else:
                        code = Exit(await asyncio.to_thread(run, made))
                said = f"jobtui {asked.command.name}: exit code {int(code)}, {code.name.lower()}"
                return fenced("\n".join(printed), said, beside.getvalue().strip()), code is Exit.USAGE
        except ConfigError as error:
            return mask_text(str(error)), True
        except TimeoutError:
            return f"no answer within {ANSWER_S:g} s", True
    return answering.words, True


def server_of(context: Context) -> "Server[Any]":
    """The server of the protocol. Needs the extra `mcp`."""
    import mcp_types as types
    from mcp.server import Server

    from jobtui import __version__

    turn = asyncio.Lock()

    def tool_of(name: str) -> types.Tool:
        tool, given = TOOLS[name], TOOLS[name]["properties"].items()
        properties = {key: one if {"type", "enum"} & one.keys() else _TEXT | one for key, one in given}
        schema = {"type": "object", "properties": properties, "required": tool["needed"]}
        hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.Tool(
            name=name, description=tool["about"], annotations=hints,
            input_schema=schema | {"additionalProperties": False},
        )  # fmt: skip

    async def list_tools(_: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(map(tool_of, TOOLS)))

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            asked = asked_of(params.name, params.arguments or {})
        except ValueError as error:
            text, failed = mask_text(str(error)), True
        else:
            async with turn:
                text, failed = await answered(context, asked)
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)

    return Server("jobtui", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def run(context: Context) -> int:
    if not configured(context):
        return no_source()
    try:
        from mcp.server.stdio import stdio_server
    except ImportError:
        return complain("mcp needs the official SDK: pip install 'jobtui[mcp]'", Exit.USAGE)

    async def serve() -> None:
        server = server_of(context)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())
    return Exit.FINE
