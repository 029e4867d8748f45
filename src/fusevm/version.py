"""The version of this package, which is part of every cache key."""

__version__ = "0.1.0"
