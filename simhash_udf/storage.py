"""Files at the edge: where paths lead, what lies there, and small files written whole.

A path without a scheme is a local one; the others are opened by pyarrow.fs (s3, gs, abfs, hdfs).
"""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
import posixpath
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from pyarrow import ArrowInvalid, Schema, fs, parquet

from simhash_udf.errors import InputError, OutputError

_GLOB = re.compile(r"[*?\[{]")
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "wasbs"}


def local_path(path: str) -> str | None:
    """The absolute path of a local file, with links resolved; None for a path on another file system.

    >>> local_path("s3://bucket/corpus") is None
    True
    """
    if path.startswith("file:"):
        path = re.sub(r"^file:(//(localhost)?(?=/))?", "", path)
    elif "://" in path:
        return None
    return os.path.realpath(os.path.expanduser(path))


def as_uri(path: str) -> str:
    """A path that means the same file to Spark as to us, whatever the cluster's default file system is; for writing."""
    local = local_path(path)
    return f"file://{local}" if local else path


def as_literal_glob(path: str) -> str:
    """`as_uri` for reading: Spark takes what it reads as a glob, so the signs of one are escaped."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", as_uri(path))


def expand(path: str) -> list[str]:
    """The local files and directories that a path or glob names, sorted; any other path as it is.

    Raises:
        InputError: nothing is there.
    """
    local = local_path(path)
    if local is None:
        return [path]
    if os.path.exists(local):
        return [local]
    plain = os.path.expanduser(re.sub(r"^file:(//(localhost)?(?=/))?", "", path))
    patterns = [alternative.replace("[^", "[!") for alternative in alternatives(plain)]
    matches = {os.path.realpath(match) for pattern in patterns for match in glob.glob(pattern, recursive=True)}
    if matches:
        return sorted(matches)
    what = "the glob matches nothing" if _GLOB.search(path) else "no file or directory is there"
    raise InputError(f"the input {path!r} cannot be read: {what}; relative paths start at {os.getcwd()!r}")


def expand_remote(path: str) -> list[str]:
    """The files and directories that a path or glob on another file system names, sorted.

    Raises:
        InputError: nothing is there, or the file system cannot be asked.
    """
    scheme, _, rest = path.partition("://")
    host, _, inner = rest.partition("/")
    root = f"{scheme}://{host}/"
    try:
        if _kind(path) != fs.FileType.NotFound:
            return [path]
        found = {root + match for pattern in alternatives(inner.strip("/")) for match in _matches(root, pattern.split("/"))}
        there = sorted(match for match in found if _kind(match) != fs.FileType.NotFound)
    except (OutputError, OSError) as error:
        raise InputError(f"the input {path!r} cannot be read: {error}; mend the path, or what gives access to it") from None
    if not there:
        what = "the glob matches nothing" if _GLOB.search(path) else "no file or directory is there"
        raise InputError(f"the input {path!r} cannot be read: {what}")
    return there


def _matches(root: str, parts: list[str]) -> list[str]:
    matches = [""]
    for part in parts:
        names: list[tuple[str, str]] = [(match, part) for match in matches]
        if _GLOB.search(part):
            above = [match for match in matches if _kind(root + match) == fs.FileType.Directory]
            names = [(match, name) for match in above for name in names_in(root + match) or []]
            names = [(match, name) for match, name in names if fnmatch.fnmatchcase(name, part.replace("[^", "[!"))]
        matches = [f"{match}/{name}".lstrip("/") for match, name in names]
    return matches


def _kind(path: str) -> fs.FileType:
    system, inner = _open(path)
    return system.get_file_info(inner).type


def alternatives(pattern: str) -> list[str]:
    """The globs without braces that a glob with braces stands for.

    >>> alternatives("crawl-{1,2{a,b}}/x")
    ['crawl-1/x', 'crawl-2a/x', 'crawl-2b/x']
    """
    start = pattern.find("{")
    depth, cuts = 0, [start]
    for at in range(start, len(pattern) if start >= 0 else start):
        depth += {"{": 1, "}": -1}.get(pattern[at], 0)
        if depth == 0 or (depth == 1 and pattern[at] == ","):
            cuts.append(at)
        if depth == 0:
            parts = [pattern[one + 1 : other] for one, other in itertools.pairwise(cuts)]
            return [made for part in parts for made in alternatives(pattern[:start] + part + pattern[at + 1 :])]
    return [pattern]


def overlap(output: str, inputs: list[str]) -> str | None:
    """How an output directory meets one of the inputs, or what a link within one leads to: a phrase, or None where all lie apart.

    An input that is a glob counts as all that it could match.
    """
    place = _place(output).rstrip("/").split("/")
    for path in inputs:
        local = local_path(path)
        is_glob = _GLOB.search(path) and not (local and os.path.exists(local))
        for pattern in alternatives(path) if is_glob else [path]:
            how = _meets(place, _place(pattern).rstrip("/").split("/"), is_glob=bool(is_glob))
            if how:
                return f"{how} the input {path!r}"
        for link in _links_below(local) if local else ():
            how = _meets(place, os.path.realpath(link).split("/"), is_glob=False)
            if how:
                return f"{how} what {link!r} in the input {path!r} links to"
    return None


def _meets(place: list[str], other: list[str], *, is_glob: bool) -> str | None:
    for ours, theirs in zip(place, other, strict=False):
        if is_glob and theirs == "**":
            return "lies inside"
        if ours != theirs and not (is_glob and fnmatch.fnmatchcase(ours, theirs.replace("[^", "[!"))):
            return None
    return "is" if len(place) == len(other) else "lies inside" if len(place) > len(other) else "contains"


def _links_below(directory: str) -> Iterator[str]:
    """The links in a directory and in all below it, also in those that links lead to."""
    waiting, seen = [directory], {os.path.realpath(directory)}
    while waiting:
        for above, below, names in os.walk(waiting.pop()):
            for link in (path for name in below + names if os.path.islink(path := os.path.join(above, name))):
                yield link
                target = os.path.realpath(link)
                if os.path.isdir(target) and target not in seen:
                    seen.add(target)
                    waiting.append(target)


def _place(path: str) -> str:
    local = local_path(path)
    if local is not None:
        return local
    # Not by urlsplit, for which a "?" ends the path.
    scheme, _, rest = path.partition("://")
    host, _, inner = rest.partition("/")
    return f"{_ALIASES.get(scheme, scheme)}://{host}{posixpath.normpath('/' + inner.strip('/'))}"


def join(directory: str, *names: str) -> str:
    """A path below a directory."""
    return "/".join([directory.rstrip("/"), *names])


def _open(path: str) -> tuple[fs.FileSystem, str]:
    local = local_path(path)
    if local is not None:
        return fs.LocalFileSystem(), local
    scheme, _, rest = path.partition("://")
    host, slash, inner = rest.partition("/")
    try:
        # A name may hold what means something else in a URI, such as a space, "%" or "?".
        uri = f"{re.sub('^s3[an]$', 's3', scheme)}://{host}{slash}{quote(inner)}"
        opened: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    except (ArrowInvalid, OSError) as error:
        raise OutputError(f"the path {path!r} cannot be opened: {error}") from None
    return opened


def path_is_directory(path: str) -> bool:
    """Whether a directory is there."""
    return bool(_kind(path) == fs.FileType.Directory)


def names_in(directory: str) -> list[str] | None:
    """Names of what a directory holds, sorted; None where no directory is there.

    Raises:
        OutputError: a file is there.
    """
    system, path = _open(directory)
    kind = system.get_file_info(path).type
    if kind == fs.FileType.File:
        raise OutputError(f"the output {directory!r} is a file; it must be a directory, or not be there")
    if kind == fs.FileType.NotFound:
        return None
    return sorted(posixpath.basename(entry.path) for entry in system.get_file_info(fs.FileSelector(path)))


def sizes_in(directory: str) -> dict[str, int] | None:
    """Names of the files that a directory and those within it hold, below it, and their sizes in bytes; None where there is none.

    Those of checksums, which only some file systems have, are left out.
    """
    system, path = _open(directory)
    if system.get_file_info(path).type != fs.FileType.Directory:
        return None
    listed = system.get_file_info(fs.FileSelector(path, recursive=True))
    start = len(path.rstrip("/")) + 1
    return {entry.path[start:]: entry.size for entry in listed if entry.is_file and not entry.path.endswith(".crc")}


def is_below(path: str) -> bool:
    """Whether a relative path leads to something below where it starts."""
    return not {"", ".", ".."} & set(path.split("/"))


def read_text(path: str) -> str | None:
    """The text of a small file, or None where it is not there."""
    system, inner = _open(path)
    if system.get_file_info(inner).type != fs.FileType.File:
        return None
    with system.open_input_stream(inner) as stream:
        return bytes(stream.read()).decode("utf-8")


def open_stream(path: str) -> BinaryIO:
    """A file to read bytes from, from its beginning or wherever one seeks.

    Raises:
        OSError: the file is not there or may not be read.
    """
    local = local_path(path)
    if local is not None:
        return open(local, "rb")
    system, inner = _open(path)
    stream: BinaryIO = system.open_input_file(inner)
    return stream


def read_parquet_schema(path: str) -> Schema:
    """The schema of a Parquet file, with what its writer noted there.

    Raises:
        ArrowInvalid, OSError: the file is not Parquet, or cannot be read.
    """
    system, inner = _open(path)
    return parquet.read_schema(inner, filesystem=system)


def write_text(path: str, text: str) -> None:
    """Write a small file whole: a reader sees the old content or the new, never a part."""
    local = local_path(path)
    if local is None:
        # An object store shows an object when its upload is complete.
        system, inner = _open(path)
        with system.open_output_stream(inner) as stream:
            stream.write(text.encode("utf-8"))
        return
    unfinished = Path(f"{local}.{uuid.uuid4().hex}.tmp")
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(local)


def name_of_unfinished(name: str) -> str | None:
    """The name of the file that `write_text` was writing when it left a file of this name; None where it leaves none so named."""
    found = re.fullmatch(r"(.+)\.[0-9a-f]{32}\.tmp", name)
    return found[1] if found else None


def make_directory(path: str) -> None:
    """Make a directory and those above it."""
    system, inner = _open(path)
    try:
        system.create_dir(inner, recursive=True)
    except OSError as error:
        raise OutputError(f"the output {path!r} cannot be made: {error}; choose a directory you may write to") from None


def remove(path: str) -> None:
    """Remove a file or a directory with all it holds; nothing where nothing is."""
    system, inner = _open(path)
    kind = system.get_file_info(inner).type
    if kind == fs.FileType.Directory:
        system.delete_dir(inner)
    elif kind == fs.FileType.File:
        system.delete_file(inner)
