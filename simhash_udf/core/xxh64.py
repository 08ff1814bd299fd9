"""XXH64 for the kernels: the same 64 bits as `xxhash.xxh64_intdigest` and Spark SQL's `xxhash64` on a string.

Source: the XXH64 algorithm description of the xxHash specification (Y. Collet). The `xxhash` package is the
authority; tests hold this code against it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

SEED = 42

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_SEED = np.uint64(SEED)


def _loader(bits: int, result: Any) -> Any:
    @intrinsic
    def load(_context: Any, _bytes: Any, _at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.gep(array.data, [arguments[1]])
            typed = builder.bitcast(pointer, ir.IntType(bits).as_pointer())
            return builder.zext(builder.load(typed, align=1), ir.IntType(64)) if bits < 64 else builder.load(typed, align=1)

        return result(_bytes, types.int64), codegen

    return load


# Little-endian loads of bytes[at : at + 8] and [at : at + 4], without bounds checks.
load64 = _loader(64, types.uint64)
load32 = _loader(32, types.uint64)


@njit(cache=True, inline="always")
def _rotate(x: Any, bits: Any) -> Any:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit(cache=True, inline="always")
def _round(lane: Any, word: Any) -> Any:
    return _rotate(lane + word * _P2, 31) * _P1


@njit(cache=True, inline="always")
def _merge(h: Any, lane: Any) -> Any:
    return (h ^ _round(np.uint64(0), lane)) * _P1 + _P4


@njit(cache=True)
def xxh64(data: Any, start: int, end: int) -> Any:
    """XXH64 (seed 42) of `data[start:end]`, a uint8 array: uint64."""
    at = np.int64(start)
    end = np.int64(end)
    if end - at >= 32:
        a = _SEED + _P1 + _P2
        b = _SEED + _P2
        c = _SEED
        d = _SEED - _P1
        while at + 32 <= end:
            a = _round(a, load64(data, at))
            b = _round(b, load64(data, at + 8))
            c = _round(c, load64(data, at + 16))
            d = _round(d, load64(data, at + 24))
            at += 32
        h = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        h = _merge(_merge(_merge(_merge(h, a), b), c), d)
    else:
        h = _SEED + _P5
    h += np.uint64(end - start)
    while at + 8 <= end:
        h = _rotate(h ^ _round(np.uint64(0), load64(data, at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        h = _rotate(h ^ (load32(data, at) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        h = _rotate(h ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))
