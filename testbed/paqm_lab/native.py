# SPDX-License-Identifier: GPL-2.0
"""Commands on an image by the host's own kernel, where it lets the caller: a guest runs a compiler
four times slower, and has one processor.

Only for what gives the same files there as in a guest: compilers. They see what a guest sees, the
image and the directories of their job below /run/lab. Many hosts and containers forbid namespaces:
then a guest has to do the work.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from paqm_lab.commands import MORTAL
from paqm_lab.uml import PLACES

# ROOT NAME PATH ro|rw ... -- COMMAND...; status 125: this host does not allow it
INSIDE = f"""
root=$1
shift
{{
	mount --make-rprivate / && mount --rbind "$root" "$root" && cd "$root" &&
	mount -t tmpfs -o mode=755 tmpfs run && mount -t tmpfs tmpfs tmp &&
	mount --rbind /dev dev && mkdir -p run/tmp || exit 125
	while [ "$1" != -- ]; do
		place=.{PLACES}/$1
		mkdir -p "$place" && mount --bind "$2" "$place" || exit 125
		[ "$3" = rw ] || mount -o remount,bind,ro "$place" || exit 125
		shift 3
	done
	shift
	mount -o remount,bind,ro "$root" || exit 125
}}
exec chroot . /usr/bin/env -i -C / "$@"
"""


def run(
    root: Path, places: dict[str, Path], writable: tuple[str, ...], environment: dict[str, str],
    command: list[str], log: Path, waiting: Callable[[], None] = lambda: None,
) -> bool:
    """Did the command end well on the image, in namespaces of its own? What it said is in the log.

    @waiting: called again and again until it ends.
    """
    if not all(shutil.which(name) for name in ("unshare", "chroot", "mount", "setpriv")):
        return False
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = [*MORTAL, "unshare", *own, "--mount", "--pid", "--ipc"]
    words += ["--net", "--kill-child", "--fork", "sh", "-c", INSIDE, "sh", str(root)]
    for name, path in places.items():
        words += [name, str(path), "rw" if name in writable else "ro"]
    words += ["--", *(f"{name}={value}" for name, value in environment.items()), *command]
    with log.open("wb") as said:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            while process.poll() is None:
                time.sleep(0.1)
                waiting()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # and with unshare all in its namespace
                process.wait()
    return process.returncode == 0
