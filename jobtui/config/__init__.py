"""Settings: the effective value of each with where it came from, out of flags, environment and one file.

`grammar.SETTINGS` lists them. Precedence: defaults, then the configuration file, then its chosen profile,
then the environment, then flags; a higher one replaces a setting whole. Reads the configuration file and
nothing else; opens no source.
"""

from jobtui.config.file import ConfigError as ConfigError
from jobtui.config.file import ConfigFile as ConfigFile
from jobtui.config.file import parse_file as parse_file
from jobtui.config.file import user_file as user_file
from jobtui.config.settings import Config as Config
from jobtui.config.settings import Effective as Effective
from jobtui.config.settings import Written as Written
from jobtui.config.settings import check_text as check_text
from jobtui.config.settings import load as load
from jobtui.config.settings import resolved as resolved
from jobtui.config.settings import split_head as split_head
from jobtui.config.settings import written_tables as written_tables
