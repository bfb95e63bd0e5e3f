"""What the scripts share.

Usage of each script: NAME_cases.py GATEWAY_URL ENGINE_URL. Prints one line a case; any failure ends with
status 1.
"""

import contextlib
import json
import sys
import time
import urllib.request

GATEWAY, ENGINE = sys.argv[1], sys.argv[2]


def stats():
    with urllib.request.urlopen(ENGINE + "/sim/stats") as answer:
        return json.load(answer)


@contextlib.contextmanager
def stopped_after():
    """What is done inside makes the simulated engine stop one request, at once."""
    before = stats()["aborted"]
    yield
    deadline = time.monotonic() + 10
    while stats()["aborted"] != before + 1 or stats()["running"] != 0:
        assert time.monotonic() < deadline, stats()
    assert stats()["tokens_after_close"] == 0, stats()


class raises:
    """What is done inside must raise this; the error is kept."""

    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        assert error is not None, f"{self.kind.__name__} was not raised"
        self.error = error
        return isinstance(error, self.kind)


def run(cases):
    failed = 0
    for name, case in cases.items():
        try:
            case()
            print(f"ok: {name}")
        except Exception as error:  # every case is reported, whatever it raised
            failed += 1
            print(f"failed: {name}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)
