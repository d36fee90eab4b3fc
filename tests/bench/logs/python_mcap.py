"""Seconds that the public Python package mcap takes to read every message of a file, best of three; one line of JSON.

usage: python_mcap.py FILE
"""
import json
import sys
import time

from mcap.reader import make_reader


def read(path):
    start = time.perf_counter()
    messages = size = 0
    with open(path, "rb") as stream:
        for _, _, message in make_reader(stream, validate_crcs=True).iter_messages():
            messages += 1
            size += len(message.data)
    return time.perf_counter() - start, messages, size


best = min(read(sys.argv[1]) for _ in range(3))
print(json.dumps({"seconds": round(best[0], 4), "messages": best[1], "bytes": best[2]}))
