"""Checks of sizes that the scores share."""

from __future__ import annotations

from regard.errors import MechanismError


def check_positive(**sizes: int | None) -> None:
    """Raise unless every size that is given is a whole number of at least 1."""
    for name, size in sizes.items():
        if size is not None and (not isinstance(size, int) or size < 1):
            raise MechanismError(f"{name} must be at least 1; got {size}. Check the sizes.")


def shared_size(mechanism: str, query_dim: int | None, key_dim: int | None) -> int | None:
    """Return the one size of queries and keys, or raise where they differ."""
    check_positive(query_dim=query_dim, key_dim=key_dim)
    if query_dim is not None and key_dim is not None and query_dim != key_dim:
        raise MechanismError(
            f"query_dim must equal key_dim for {mechanism}; got {query_dim} and {key_dim}. "
            "Use Bilinear or Additive for sizes that differ."
        )
    return key_dim if query_dim is None else query_dim
