"""What may be written to: an output that is new, or ours and not at work."""

from __future__ import annotations

import re

from simhash_udf import storage
from simhash_udf.errors import OutputError
from simhash_udf.manifest import MANIFEST, MARKER, RUNS, read_manifest
from simhash_udf.marker import is_alive, run_at_work
from simhash_udf.settings import Settings

RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")


def check_apart(settings: Settings) -> None:
    """Raise OutputError where what a run writes to and one of its inputs meet."""
    inputs = [path for given in (*settings.paths, *settings.reference) for path in (given, *storage.expand(given))]
    meeting = storage.overlap(settings.destination, inputs)
    if meeting:
        raise OutputError(
            f"the output {settings.destination!r} {meeting}; nothing was written: choose a directory apart from all inputs"
        )


def check_output(settings: Settings) -> None:
    """Raise OutputError unless a run may write to its output; the message says why not, and what to do."""
    output = settings.output
    check_apart(settings)
    names = storage.names_in(output)
    if not names:
        return
    runs = (storage.names_in(storage.join(output, RUNS)) or []) if RUNS in names else []
    foreign = [name for name in names if not is_own(name)]
    foreign += [f"{RUNS}/{name}" for name in runs if not RUN_ID.fullmatch(name)]
    if foreign:
        raise OutputError(
            f"the output {output!r} exists and holds what no run of ours wrote, such as {foreign[0]!r}; it is left as it is: "
            "choose another directory"
        )
    if MANIFEST in names:
        # Whatever else is called so must not be overwritten.
        read_manifest(output)
    at_work = run_at_work(output)
    if at_work and is_alive(output):
        raise OutputError(
            f"in the output {output!r} the run {at_work!r} is at work; one run at a time may write to an output: wait for its "
            "end, or choose another directory"
        )
    if settings.if_exists != "fail":
        return
    state = "holds a finished result" if MANIFEST in names else "was left by a run that did not finish"
    raise OutputError(
        f"the output {output!r} {state}; choose another directory, or say --if-exists replace, or --if-exists resume to go on "
        "from the stages that are whole and of the same inputs and settings"
    )


def is_own(name: str) -> bool:
    """Whether a run writes a file or directory of this name into its output, if only for a moment."""
    return (storage.name_of_unfinished(name) or name) in (MANIFEST, MARKER, RUNS)
