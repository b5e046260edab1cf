"""The command line: ``python -m qdc``, and the script ``qdc`` that the package installs."""

from __future__ import annotations

import sys

from ._core import command_line


def main() -> int:
    """Runs the command line with the arguments of this process and gives the exit status."""
    return command_line(["qdc", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
