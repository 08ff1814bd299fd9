"""Resident memory of a process and all below it, from /proc (Linux)."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(root: int) -> dict[str, list[int]]:
    """Resident bytes of each process below one, by program name; pages shared by forked workers count once for each."""
    parents, pages = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
            parents[int(entry.name)] = int(rest.split()[1])
            pages[int(entry.name)] = (name.partition("(")[2], int((entry / "statm").read_text(encoding="ascii").split()[1]))
        except (OSError, IndexError):
            continue
    found: dict[str, list[int]] = {}
    for process in pages:
        above: int | None = process
        while above not in (root, 0, None):
            above = parents.get(above or 0)
        if above == root and process != root:
            name, resident = pages[process]
            found.setdefault(name, []).append(resident * _PAGE)
    return found


@dataclass
class Peaks:
    """The largest resident bytes that were seen: of all together, and by program name of one process and of its sum."""

    total: int = 0
    one: dict[str, int] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)

    def see(self, now: dict[str, list[int]]) -> None:
        """Take a sample into account."""
        self.total = max(self.total, sum(map(sum, now.values())))
        for name, sizes in now.items():
            self.one[name] = max(self.one.get(name, 0), *sizes)
            self.sums[name] = max(self.sums.get(name, 0), sum(sizes))


class Sampler:
    """Samples, five times a second while it is entered, the memory of the processes below this one."""

    def __init__(self) -> None:
        self.peaks = Peaks()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.is_set():
            self.peaks.see(resident_bytes(os.getpid()))
            time.sleep(0.2)
