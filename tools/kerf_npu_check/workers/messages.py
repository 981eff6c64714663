"""What compilers say, as one line."""

import re

_NOISE = re.compile(r" *#\d+ 0x|PLEASE|Stack dump|\d+\.\s|.*: (?:note|warning): |\s*\^?$")
_MOST_CHARACTERS = 400


def plain(message: str) -> str:
    """Without stack dumps, warnings and pointers to columns."""
    lines = (line.strip() for line in message.splitlines() if not _NOISE.match(line))
    return " ".join(lines)[:_MOST_CHARACTERS]
