"""What can be said on the command line: settings, flags, commands, as tables.

`settings` and `commands` are the only place that lists them. The parser, help, completion, `JOBTUI_*`
variables, the keys of the configuration file and `jobtui config` are all made from them: a flag is one
entry. A setting may also be given in the environment and in the configuration file; a flag may not. Parses
nothing itself.
"""

from jobtui.grammar.commands import COMMAND_BY_NAME as COMMAND_BY_NAME
from jobtui.grammar.commands import COMMANDS as COMMANDS
from jobtui.grammar.commands import DASHBOARD as DASHBOARD
from jobtui.grammar.commands import GENERAL_FLAGS as GENERAL_FLAGS
from jobtui.grammar.commands import OUTPUT_FLAGS as OUTPUT_FLAGS
from jobtui.grammar.commands import REPORTS as REPORTS
from jobtui.grammar.commands import flags_of as flags_of
from jobtui.grammar.kinds import ENVIRONMENT_PREFIX as ENVIRONMENT_PREFIX
from jobtui.grammar.kinds import Argument as Argument
from jobtui.grammar.kinds import Command as Command
from jobtui.grammar.kinds import Expects as Expects
from jobtui.grammar.kinds import Flag as Flag
from jobtui.grammar.kinds import Invocation as Invocation
from jobtui.grammar.kinds import Kind as Kind
from jobtui.grammar.kinds import Scope as Scope
from jobtui.grammar.kinds import Setting as Setting
from jobtui.grammar.settings import SETTING_BY_NAME as SETTING_BY_NAME
from jobtui.grammar.settings import SETTINGS as SETTINGS
from jobtui.grammar.spelling import nearest as nearest
