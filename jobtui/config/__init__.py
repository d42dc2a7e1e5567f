"""Settings: the effective value of each with where it came from, out of flags, environment and one file.

`grammar.SETTINGS` lists them. Precedence: defaults, then the configuration file, then its chosen profile,
then the environment, then flags; a higher one replaces a setting whole. Opens no source.
"""

from jobtui.config.file import ConfigError, ConfigFile, parse_file, user_file
from jobtui.config.settings import Config, Effective, WrittenSetting, check_text, load, resolved, split_head
from jobtui.config.settings import written_tables as written_tables

__all__ = ["Config", "ConfigError", "ConfigFile", "Effective", "WrittenSetting", "check_text", "load"]
__all__ += ["parse_file", "resolved", "split_head", "user_file"]
