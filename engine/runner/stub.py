"""The first code inside a box: takes one task from standard input, lowers its own rights, hands over to the plugin.

Run as ``python -m engine.runner.stub FD``. The exit status and what is printed mean nothing; every fact is one JSON
line on the private descriptor FD. Besides this file only ``forms`` and ``plugin`` of the program exist in here.
"""

import json
import os
import sys
from typing import Any

NICE = 5  # behind the sampler, but not so far that an honest test runs out of time beside it


class Records:
    """The private descriptor: numbered lines, signed with the task's key. A forked child cannot speak on it."""

    def __init__(self, descriptor: int):
        self._descriptor, self._key, self._count, self._pid = descriptor, "", 0, os.getpid()

    def sign(self, key: str) -> None:
        self._key = key

    def put(self, kind: str, **fields: object) -> None:
        if os.getpid() != self._pid:
            os._exit(1)  # the candidate forked, and its child has come back into our code
        line = json.dumps({"n": self._count, "key": self._key, "kind": kind, **fields}) + "\n"
        self._count += 1
        os.write(self._descriptor, line.encode())


def read_task(records: Records) -> dict[str, Any]:
    """Says hello and waits for the task; leaves when the pipe ends without one, for then the service is gone."""
    records.put("hello")
    text = sys.stdin.buffer.read()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if not text:
        os._exit(1)
    task: dict[str, Any] = json.loads(text)
    records.sign(task["key"])
    return task


def lower_rights(uid: int | None, limits: dict[str, int]) -> None:
    """Becomes the box's ordinary user (``uid`` None: it is that already), then sets limits and a low priority."""
    import resource

    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    os.nice(NICE)
    for name, value in limits.items():
        _, ceiling = resource.getrlimit(getattr(resource, name))
        value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(getattr(resource, name), (value, value))


def main(descriptor: int) -> None:
    os.set_inheritable(descriptor, False)
    records = Records(descriptor)
    task = read_task(records)
    sys.path += task["path"]
    lower_rights(task["uid"], task["limits"])
    from engine.runner import plugin  # pytest comes with it: before the candidate, whose clock must not pay for it

    plugin.perform(task, records.put)


if __name__ == "__main__":
    main(int(sys.argv[1]))
