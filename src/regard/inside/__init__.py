"""Look inside any model, and put attention into it."""

from regard.inside.insert import Insertion, insert
from regard.inside.inserted import INSERTS, Inserted, Placement, Sizes

__all__ = ["INSERTS", "Inserted", "Insertion", "Placement", "Sizes", "insert"]
