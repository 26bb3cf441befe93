"""C{python -m hashedtokens USER}: create a token, and print its table for the file to standard output."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from hashedtokens.tokens import create_token


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table to standard output, and the token to standard error."""
    parser = argparse.ArgumentParser("hashedtokens", description="Create a token and its table for the file.")
    parser.add_argument("user")
    parser.add_argument("--group", action="append", default=[], help="a group of the user; repeat it for several")
    parser.add_argument("--days", type=float, default=90.0, help="days until the token expires; 0 for never")
    options = parser.parse_args(arguments)
    expires = time.time() + options.days * 86400 if options.days else None
    try:
        token, table = create_token(options.user, options.group, expires)
    except ValueError as error:
        parser.error(str(error))
    print(table)
    print(token, file=sys.stderr)


if __name__ == "__main__":
    main()
