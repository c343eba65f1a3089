"""Models' bytes as a bad disk or an attacker leaves them."""

from __future__ import annotations

import random

_INTERESTING = (0, 1, 0x7F, 0x80, 0xFF)


def damaged(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """One to four changes; other: what parts are taken from."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        if not data:
            break
        at = rng.randrange(len(data))
        length = rng.randint(1, max(1, min(64, len(data) - at)))
        change = rng.randrange(6)
        if change == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif change == 1:
            data[at] = rng.choice(_INTERESTING)
        elif change == 2:
            del data[at:]
        elif change == 3:
            del data[at : at + length]
        elif change == 4:
            data[at:at] = data[at : at + length]
        else:
            begin = rng.randrange(max(1, len(other)))
            data[at : at + length] = other[begin : begin + length]
    return bytes(data)
