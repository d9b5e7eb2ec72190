"""From a model's name to a model that is ready: find, fetch, convert, load."""

from engine.models.loaded import LoadedModel

__all__ = ["LoadedModel"]
