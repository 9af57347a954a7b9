"""Memory that is read and written by attention: addressing, machines, stacks."""

from regard.memory.heads import ADDRESSINGS, Layout
from regard.memory.machine import Machine

__all__ = ["ADDRESSINGS", "Layout", "Machine"]
