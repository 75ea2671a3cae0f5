# SPDX-License-Identifier: GPL-2.0
"""Runs what rows need, each thing once: its result is kept by the content of what made it.

Two rows that need the same run share it, at the same time, too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import cache, lab, suite
from paqm_lab.errors import LabError

Json = dict[str, Any]
Say = Callable[[str], None]

LIMIT_S = 4 * 3600  # wall seconds after which a guest is given up: a loaded machine is slow
# What shapes a result besides suite.sources_digest(): scripts in guests, networks of routers.
SCRIPTS = ("kernel/lab-tests/*.py", "testbed/paqm_lab/multi/*.py")
KEPT = ("result.json", "stamp.json", "command.log")


class Store:
    """Results of runs, by content."""

    def __init__(self, out: Path, say: Say) -> None:
        self.out, self.say = out, say
        paths = sorted(p for pattern in SCRIPTS for p in cache.REPO.glob(pattern) if p.is_file())
        parts = [str(p.relative_to(cache.REPO)).encode() + p.read_bytes() for p in paths]
        self.programs = cache.digest(suite.sources_digest().encode(), *parts)
        self.locks: dict[str, threading.Lock] = {}
        self.guard = threading.Lock()

    def get(self, what: Json, make: Callable[[Path], None]) -> Json:
        """What `make(directory)` writes as result.json; `what` names all it hangs on."""
        text = json.dumps(what | {"programs": self.programs}, sort_keys=True)
        home = self.out / "runs" / cache.digest(text.encode())
        with self.guard:
            lock = self.locks.setdefault(home.name, threading.Lock())
        with lock:
            if not (home / "stamp.json").exists():
                with lab.alone_in(self.out / "locks" / home.name):
                    self._make(home, make)
                    (home / "stamp.json").write_text(text + "\n")
            found: Json = json.loads((home / "result.json").read_text())
        return found


    def _make(self, home: Path, make: Callable[[Path], None]) -> None:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        make(home)
        if not (home / "result.json").exists():
            raise LabError(f"{home}: the run wrote no result.json")
        for path in home.iterdir():  # logs and recordings are large
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in KEPT:
                path.unlink()


class Context:
    """What the function of a row is given."""

    def __init__(self, store: Store, parameters: Json) -> None:
        self.store, self.p = store, parameters

    def scenario(self, file: str, variant: str, seed: int, changes: Json | None = None) -> Json:
        """result.json of a scenario; `changes` replace keys of its first level."""
        from paqm_lab import run, scenario
        from paqm_lab.multi import main, netscenario

        path, data = scenario.read(str(cache.REPO / file))
        data = data | (changes or {})

        def make(home: Path) -> None:
            if netscenario.describes(data):
                network = netscenario.check(path, data)
                main.run_all(network, home, seed, [variant], self.store.say)
                return
            options = run.Options(
                out=home,
                seed=seed,
                variants=[variant],
                keep_packets=False,
                repeat_check=False,
                page=False,
            )
            run.run_scenario(scenario.check(path, data), options, lambda text: None)

        return self.store.get({"scenario": data, "variant": variant, "seed": seed}, make)

    def guest(self, words: list[str], seed: int, config: Json | None = None) -> Json:
        """A script in a guest, given `--out FILE`, for its result, and `--config FILE` if any."""

        def make(home: Path) -> None:
            more = ["--out", str(home / "result.json")]
            if config is not None:
                (home / "config.json").write_text(json.dumps(config))
                more += ["--config", str(home / "config.json")]
            head = ["exec", "--timeout", str(LIMIT_S), "--seed", str(seed), "--dir", str(home)]
            self._call([*head, *words, *more], home, accept=(0, 1))

        return self.store.get({"guest": words, "seed": seed, "config": config}, make)

    def command(self, words: list[str]) -> Json:
        """An experiment of paqm-lab that leaves result.json in the directory of its --out."""

        def make(home: Path) -> None:
            self._call([*words, "--out", str(home)], home, accept=(0, 1))

        return self.store.get({"command": words}, make)

    @staticmethod
    def _call(words: list[str], home: Path, accept: tuple[int, ...]) -> None:
        """paqm-lab with these words; status 1 says that a check failed: that is for us to judge."""
        log = home / "command.log"
        with log.open("w") as text:
            done = subprocess.run(
                [str(cache.TESTBED / "paqm-lab"), *words],
                cwd=cache.REPO,
                stdout=text,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        if done.returncode not in accept:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise LabError(
                f"paqm-lab {' '.join(words[:8])} ...: status {done.returncode}: {last} ({log})"
            )
