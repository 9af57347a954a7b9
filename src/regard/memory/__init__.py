"""Memory that is read and written by attention: hops, addressing, machines, stacks."""

from regard.memory.controllers import CONTROLLERS
from regard.memory.heads import ADDRESSINGS, Layout
from regard.memory.hops import HopReading, Hops, Linear
from regard.memory.layer import LayerState, MemoryLayer, Trace
from regard.memory.machine import Machine
from regard.memory.stack import NeuralStack, Signals, Stack

__all__ = [
    "ADDRESSINGS",
    "CONTROLLERS",
    "HopReading",
    "Hops",
    "LayerState",
    "Layout",
    "Linear",
    "Machine",
    "MemoryLayer",
    "NeuralStack",
    "Signals",
    "Stack",
    "Trace",
]
