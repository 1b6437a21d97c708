"""Whole training steps: forward, backward and the optimizer's update as one graph."""

from fairlead._step._face import TrainingStep, compile_step

__all__ = ["TrainingStep", "compile_step"]
