"""What can go wrong with a model, one type per kind; the text is the sentence a user reads."""

from engine.contract import BasslineError


class ModelNotFound(BasslineError):
    """No catalog entry, file, folder or hub repository goes by that name."""


class DownloadFailed(BasslineError):
    """The file could not be fetched, from any of its sources."""


class DiskFull(BasslineError):
    """There is not enough room for what would be written; nothing was written."""


class WrongFile(BasslineError):
    """A file is not what it should be: cut off, another file's bytes, or no weights at all."""


class UnsupportedModel(BasslineError):
    """The file is whole, but Bassline cannot run what is in it."""


class PrecisionNotAvailable(BasslineError):
    """The device cannot compute in that precision, or there is no such device."""


class ConversionFailed(BasslineError):
    """The weights could not be converted; nothing half-made is left behind."""


class IncompatibleDraft(BasslineError):
    """The draft model does not speak the target's vocabulary."""


class OutOfMemory(BasslineError):
    """The memory did not suffice for what was being done."""


class DoesNotFit(OutOfMemory):
    """The memory plan says that the model will not fit; nothing was loaded."""
