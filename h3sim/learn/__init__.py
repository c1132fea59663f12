"""Learning to schedule: an environment of Gymnasium, and a policy to compare with.

It may import single loads and all below them, and needs Gymnasium: `pip install 'h3sim[learn]'`.
Begin with `scheduling_env.py`.
"""

from h3sim.values.errors import needing_extra

with needing_extra("gymnasium", "learn"):
    import gymnasium as _gymnasium

from h3sim.learn.policies import LinearPolicy, cross_entropy, evaluate
from h3sim.learn.scheduling_env import SchedulingEnv

__all__ = ["LinearPolicy", "SchedulingEnv", "cross_entropy", "evaluate"]

_gymnasium.register("h3sim/Scheduling-v0", entry_point=SchedulingEnv)
