"""Files at the edge: where paths lead, what lies there, and small files written whole.

A path without a scheme is a local one; the others are opened by pyarrow.fs (s3, gs, abfs, hdfs).
"""

from __future__ import annotations

import glob
import os
import posixpath
import re
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from pyarrow import ArrowInvalid, fs

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
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", as_uri(path)) if local_path(path) else path


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
    plain = re.sub(r"^file:(//(localhost)?(?=/))?", "", path)
    matches = sorted(glob.glob(os.path.expanduser(plain), recursive=True))
    if matches:
        return [os.path.realpath(match) for match in matches]
    what = "the glob matches nothing" if _GLOB.search(path) else "no file or directory is there"
    raise InputError(f"the input {path!r} cannot be read: {what}; relative paths start at {os.getcwd()!r}")


def overlap(output: str, inputs: list[str]) -> str | None:
    """How an output directory meets one of the inputs: a phrase, or None where they lie apart."""
    place = _place(output)
    for path in inputs:
        other = _place(_GLOB.split(path)[0] if "://" in path else path)
        if place == other:
            return f"is the input {path!r}"
        if place.startswith(other.rstrip("/") + "/"):
            return f"lies inside the input {path!r}"
        if other.startswith(place.rstrip("/") + "/"):
            return f"contains the input {path!r}"
    return None


def _place(path: str) -> str:
    local = local_path(path)
    if local is not None:
        return local
    parts = urlsplit(path)
    return f"{_ALIASES.get(parts.scheme, parts.scheme)}://{parts.netloc}{posixpath.normpath('/' + parts.path.strip('/'))}"


def join(directory: str, *names: str) -> str:
    """A path below a directory."""
    return "/".join([directory.rstrip("/"), *names])


def _open(path: str) -> tuple[fs.FileSystem, str]:
    local = local_path(path)
    if local is not None:
        return fs.LocalFileSystem(), local
    try:
        opened: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", path))
    except (ArrowInvalid, OSError) as error:
        raise OutputError(f"the path {path!r} cannot be opened: {error}") from None
    return opened


def path_is_directory(path: str) -> bool:
    """Whether a directory is there."""
    system, inner = _open(path)
    return bool(system.get_file_info(inner).type == fs.FileType.Directory)


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


def read_text(path: str) -> str | None:
    """The text of a small file, or None where it is not there."""
    system, inner = _open(path)
    if system.get_file_info(inner).type != fs.FileType.File:
        return None
    with system.open_input_stream(inner) as stream:
        return bytes(stream.read()).decode("utf-8")


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
