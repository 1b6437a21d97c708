"""``fairlead.bisect``: the first rung of the ladder that breaks, and the smallest graph that shows it.

The ladder is eager, aot_eager, the interpreter of the IR, the backend. What the backend compiles runs in a process of
its own, so that a crash or a hang costs a trial only.
"""

from fairlead._bisect._face import bisect
from fairlead._bisect._ladder import Limits, bisect_file, bisect_model

__all__ = ["Limits", "bisect", "bisect_file", "bisect_model"]
