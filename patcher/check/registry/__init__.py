"""What a release reads and takes that is no Python symbol: environment variables, engine flags, config keys."""

from patcher.check.registry.flags import judge_flag, options_of
from patcher.check.registry.keys import judge_key
from patcher.check.registry.variables import judge_variable, variables_of

__all__ = ["judge_flag", "judge_key", "judge_variable", "options_of", "variables_of"]
