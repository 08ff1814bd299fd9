"""Every error the project raises on purpose.

    SimHashError                 exit code 1
    |-- SettingsError            exit code 2   a knob is wrong: flag, TOML key or argument
    |-- InputError               exit code 3   the documents cannot be used as they are
    |-- OutputError              exit code 4   the output place is taken, unsafe or unreadable
    |-- TooManyPairs             exit code 5   the pairs asked for are more than the limit allows
    |-- NotConverged             exit code 6   the rounds of clustering ran out before the graph was small enough
    |-- IncompleteResult         exit code 7   a check on the job's own result failed
    `-- TooManyRemoved           exit code 8   more documents would be dropped than the limit allows

Each message says what was given, what must hold, and the cure.
"""

from __future__ import annotations

__all__ = [
    "IncompleteResult",
    "InputError",
    "NotConverged",
    "OutputError",
    "SettingsError",
    "SimHashError",
    "TooManyPairs",
    "TooManyRemoved",
]


class SimHashError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what a job exits with."""

    exit_code = 1


class SettingsError(SimHashError, ValueError):
    """A setting has a value that cannot work."""

    exit_code = 2


class InputError(SimHashError, ValueError):
    """Documents or fingerprints that cannot be used as they are."""

    exit_code = 3


class OutputError(SimHashError):
    """The output place is taken, overlaps an input, or does not hold what it should."""

    exit_code = 4


class TooManyPairs(SimHashError):
    """The number of document pairs is above the limit; nothing was published."""

    exit_code = 5


class NotConverged(SimHashError):
    """The rounds of clustering ran out before what was left fit one task."""

    exit_code = 6


class IncompleteResult(SimHashError):
    """A check that the job makes on its own result failed; the result was not published."""

    exit_code = 7


class TooManyRemoved(SimHashError):
    """A larger share of the documents than allowed would be dropped; nothing was published."""

    exit_code = 8
