"""The billboard: what everybody may see. Everything computed from it is post-processing."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ChannelError, UnknownNameError


class Billboard:
    """Published noisy statistics, frozen as they arrive; only a channel publishes.

    Reading never changes it. `retire` drops the arrays of a step that every reader is done with, so that a table larger
    than memory can pass through one step at a time; the digests stay.
    """

    def __init__(self) -> None:
        self._slices: dict[tuple[str, int], NDArray[np.float64] | None] = {}
        self._digests: dict[tuple[str, int], str] = {}

    def publish(self, name: str, part: int, value: NDArray[np.float64], *, known_digest: str | None = None) -> str:
        """Freezes the array (the caller's too), posts it and returns its digest.

        Args:
            name: The release.
            part: Which slice of it.
            value: The noisy slice.
            known_digest: Its digest, where the caller has it: a large table is hashed once.

        Raises:
            ChannelError: This slice is on the billboard already.
        """
        if (name, part) in self._slices:
            raise ChannelError(f"{name}, part {part} is on the billboard already", release=name)
        value.flags.writeable = False
        frozen = value.view()  # of a frozen array: its flag cannot be set back
        self._slices[name, part] = frozen
        self._digests[name, part] = known_digest or digest(frozen)
        return self._digests[name, part]

    def read(self, name: str, *, part: int) -> NDArray[np.float64]:
        """Returns one published slice, read-only.

        Raises:
            UnknownNameError: It has not been published.
            ChannelError: It was retired.
        """
        if (name, part) not in self._slices:
            raise UnknownNameError("slice on the billboard", f"{name}[{part}]", [f"{n}[{p}]" for n, p in self._slices])
        value = self._slices[name, part]
        if value is None:
            raise ChannelError(f"{name}, part {part} was retired from the billboard", release=name)
        return value

    def retire(self, part: int) -> None:
        """Drops the arrays of one part; their digests stay."""
        for key in self._slices:
            if key[1] == part:
                self._slices[key] = None

    @property
    def digests(self) -> dict[tuple[str, int], str]:
        """Returns the digest of every published slice by (release, part)."""
        return dict(self._digests)


def digest(array: NDArray[np.float64]) -> str:
    """Returns a BLAKE2b digest of shape and content, as 32 hexadecimal digits."""
    h = hashlib.blake2b(str((array.shape, array.dtype.str)).encode(), digest_size=16)
    h.update(np.ascontiguousarray(array).data.cast("B"))
    return h.hexdigest()
