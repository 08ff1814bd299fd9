"""The file that says which run is at work in an output, and whether it still is.

A run writes it at its start, again each minute, and removes it at its end. Of a run that was killed it stays behind: its process
is gone, or, on another machine, it has not written for a while.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from pathlib import Path

from simhash_udf import storage
from simhash_udf.manifest import MARKER

BEAT_SECONDS = 60
SILENT_SECONDS = 600


def run_at_work(output: str) -> str | None:
    """The id of the run that is at work in an output, or was when it was killed, as its marker says; None where none is."""
    told = _read(output)
    return None if told is None else str(told.get("run", "unknown"))


def is_alive(output: str) -> bool:
    """Whether the run that the marker names is still at work, as far as can be told."""
    told = _read(output)
    if not told:
        # None, or one that was being written when its run was killed.
        return False
    process = told.get("process")
    if told.get("host") == platform.node() and isinstance(process, int):
        return _began(process) == told.get("began")
    beat = told.get("beat")
    return isinstance(beat, (int, float)) and time.time() - beat < SILENT_SECONDS


def _read(output: str) -> dict[str, object] | None:
    text = storage.read_text(storage.join(output, MARKER))
    if text is None:
        return None
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _began(process: int) -> str | None:
    """When a process of this machine began, in its own terms; None where there is none of that number."""
    try:
        # The 22nd field; the second is a name in parentheses, which may hold spaces.
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "" if not Path("/proc/self/stat").exists() else None


class Marker:
    """The marker of a run, written anew each minute until it is removed."""

    def __init__(self, output: str, run: str) -> None:
        self.output = output
        self.run = run
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="simhash-marker", daemon=True)

    def write(self) -> None:
        """Write the marker, and go on writing it."""
        self._write()
        self._thread.start()

    def remove(self) -> None:
        """Stop writing, and remove the marker, unless it is another run's by now."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if run_at_work(self.output) == self.run:
            storage.remove(storage.join(self.output, MARKER))

    def _write(self) -> None:
        process = os.getpid()
        told = {"run": self.run, "host": platform.node(), "process": process, "began": _began(process), "beat": time.time()}
        storage.write_text(storage.join(self.output, MARKER), json.dumps(told) + "\n")

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                if run_at_work(self.output) == self.run:
                    self._write()
            except OSError:
                # The next table that is written tells of it.
                continue
