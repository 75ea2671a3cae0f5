# SPDX-License-Identifier: GPL-2.0
"""Two parts of a preparation side by side: a download need not wait for a compiler."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str], None]


@contextmanager
def beside(work: Callable[[Progress], object], progress: Progress) -> Iterator[Progress]:
    """Does the work in a thread while the block runs, and waits for it behind the block.

    What the block tells goes to what it is given: there an error of the work ends the block, too.
    Where the block ends by an error nobody waits: the thread ends with this process, and with it
    the programs that it runs (apt.run, uml.run).
    """
    failed: list[BaseException] = []
    lock = threading.Lock()

    def tell(text: str) -> None:
        with lock:
            progress(text)

    def tell_if_well(text: str) -> None:
        if failed:
            raise failed[0]
        tell(text)

    def do() -> None:
        try:
            work(tell)
        except BaseException as err:
            failed.append(err)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    yield tell_if_well
    thread.join()
    if failed:
        raise failed[0]
