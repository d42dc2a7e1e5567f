"""Settings: the effective value of each with where it came from, out of flags, environment and one file.

`grammar.SETTINGS` lists them. Precedence: defaults, then the configuration file, then its chosen profile,
then the environment, then flags; a higher one replaces a setting whole. Reads the configuration file and
nothing else; opens no source.
"""

from jobtui.config.file import ConfigFile as ConfigFile
from jobtui.config.file import parse_file as parse_file
from jobtui.config.file import user_file as user_file
from jobtui.config.loading import Config as Config
from jobtui.config.loading import load as load
from jobtui.config.loading import resolved as resolved
from jobtui.config.mistakes import ConfigError as ConfigError
from jobtui.config.values import LABELLED as LABELLED
from jobtui.config.values import Effective as Effective
from jobtui.config.values import split_head as split_head
from jobtui.config.written import check_text as check_text
from jobtui.config.written import written_tables as written_tables
