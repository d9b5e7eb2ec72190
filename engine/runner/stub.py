"""The first code inside a box: lowers its own rights, loads what its role needs, and only then takes one task.

Run as ``python -m engine.runner.stub SETTINGS``. The exit status and what is printed mean nothing; every fact is one
JSON line on a private descriptor, which a candidate in a box of its own does not have.
"""

import json
import os
import site
import sys
import threading
from typing import Any, TypeVar

from engine.runner.task import BoxTask, Observation, Task

NICE = 5  # behind the sampler, but not so far that an honest test runs out of time beside it
_CPU_GRACE_S = 5


AnyTask = TypeVar("AnyTask", bound=BoxTask)


class Records:
    """The private descriptor: numbered lines, signed with the task's key. A forked child cannot speak on it."""

    def __init__(self, descriptor: int):
        self._descriptor, self._key, self._count, self._pid = descriptor, "", 0, os.getpid()
        self._lock = threading.Lock()

    def sign(self, key: str) -> None:
        self._key = key

    def put(self, kind: str, **fields: object) -> None:
        if os.getpid() != self._pid:
            os._exit(1)  # the candidate forked, and its child has come back into our code
        with self._lock:
            line = json.dumps({"n": self._count, "key": self._key, "kind": kind, **fields}) + "\n"
            self._count += 1
            os.write(self._descriptor, line.encode())

    def close(self) -> None:
        os.close(self._descriptor)


def lower_rights(uid: int | None, limits: dict[str, int], fence: dict[str, Any] | None) -> None:
    """Becomes the box's ordinary user (``uid`` None: it is that already), then sets limits and a low priority."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    os.nice(NICE)
    for name, value in limits.items():
        limit(name, value)
    if fence is not None:
        from engine.runner import landlock

        landlock.fence(fence["read"], fence["write"], bytes.fromhex(fence["filter"]))


def limit(name: str, value: int) -> None:
    import resource

    _, ceiling = resource.getrlimit(getattr(resource, name))
    value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
    resource.setrlimit(getattr(resource, name), (value, value))


def read_task(records: Records, kind: type[AnyTask]) -> AnyTask:
    """Says hello and waits for the task; leaves when the pipe ends without one, for then the service is gone."""
    records.put("hello")
    data = sys.stdin.buffer.read()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if not data:
        os._exit(1)
    task = kind.from_bytes(data)
    records.sign(task.key)
    limit("RLIMIT_CPU", int(task.seconds) + _CPU_GRACE_S)
    return task


def main(settings: dict[str, Any]) -> None:
    descriptors = [settings["records"], *settings["pipes"]]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    records = Records(settings["records"])
    sys.path += settings["path"]
    site.setquit()  # exit and quit, which an interpreter without site lacks
    site.sethelper()
    lower_rights(settings["uid"], settings["limits"], settings.get("fence"))
    if settings["role"] == "candidate":
        from engine.runner.split.candidate import CandidateLink

        task = read_task(records, Task)
        records.close()
        source, sink = settings["pipes"]
        assert task.solution is not None  # a candidate's box always gets one
        CandidateLink(source, sink, task.solution).run()
    if settings["role"] == "observer":
        from engine.runner import observer

        observer.perform(read_task(records, Observation), records.put)
        return
    from engine.runner import plugin  # pytest comes with it: before the candidate, whose clock must not pay for it

    task = read_task(records, Task)
    plugin.perform(task, records.put, settings["pipes"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
