"""Errors a user can act on. Each kind is raised where the fact is known and shown where the user is."""


class BasslineError(Exception):
    """An error whose text is one sentence that says what to do."""


class BadRequest(BasslineError):
    """The request asks for something that cannot be; nothing was started."""


class LoadCancelled(BasslineError):
    """The user stopped a load; nothing half-made is left behind."""
