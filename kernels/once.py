"""A cache that several threads may ask at once: what two engines need at the same moment is made only once."""

import functools
import threading
from collections.abc import Callable, Hashable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once(make: Callable[P, T]) -> Callable[P, T]:
    """``functools.cache`` that never makes the same twice: who comes second waits for the first, and gets the same.

    What two threads made at once would both go on being used: two teams of threads, of which the loops know one.
    Arguments are positional and hashable.
    """
    made: dict[Hashable, T] = {}
    making = threading.RLock()

    @functools.wraps(make)
    def known(*args: P.args, **kwargs: P.kwargs) -> T:
        assert not kwargs
        try:
            return made[args]  # no lock on the way that is taken a hundred times a step
        except KeyError:
            with making:
                if args not in made:
                    made[args] = make(*args, **kwargs)
                return made[args]

    return known
