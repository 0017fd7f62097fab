import signal
import sys

from benchmarks.cli import main

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` ends a run as Ctrl-C does
    sys.exit(main())
