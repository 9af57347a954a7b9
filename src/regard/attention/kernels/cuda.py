"""Placeholder."""
def serves(tensors): return False
