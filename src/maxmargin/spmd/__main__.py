import sys

from maxmargin.spmd.command import main

if __name__ == "__main__":
    sys.exit(main())
