"""Tasks: what a person uses."""

from regard.tasks.base import bundled_models, load

__all__ = ["bundled_models", "load"]
