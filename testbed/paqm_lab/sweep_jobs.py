# SPDX-License-Identifier: GPL-2.0
"""Sweeps on clusters: a Slurm array, a Kubernetes indexed Job, the workers of a Dask cluster.

Each task of a cluster is a worker as on one machine (sweep.py); clone, cache and results lie in
directories that all machines see by the same names.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import cache
from paqm_lab.errors import LabError
from paqm_lab.sweep_file import Sweep

Say = Callable[[str], None]


def _command(command: list[str], task: str) -> str:
    """Words for a shell in which `task` is a variable."""
    return " ".join(task if word == "{task}" else shlex.quote(word) for word in command)


def _home(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise LabError(f"cannot create {directory}: {err.strerror}") from err
    return directory


def _fill(out: Path) -> str:
    return f"testbed/paqm-lab store fill {shlex.quote(str(out))}"


def slurm(directory: Path, sweep: Sweep, out: Path, command: list[str], tasks: int) -> list[str]:
    """DIR/NAME.sbatch; what to do with it."""
    file = _home(directory) / f"{sweep.name}.sbatch"
    logs = out / "slurm"
    logs.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "#!/bin/sh\n"
        f"# Sweep {sweep.name}: {tasks} workers, each with one CPU. A worker that the cluster\n"
        "# stops may be started again: what is done stays done.\n"
        f"#SBATCH --job-name={sweep.name}\n"
        f"#SBATCH --array=1-{tasks}\n"
        "#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=1\n#SBATCH --mem=2G\n#SBATCH --requeue\n"
        f"#SBATCH --output={shlex.quote(str(logs).replace('%', '%%'))}/%a.log\n"
        f"export XDG_CACHE_HOME={shlex.quote(str(cache.cache_dir().parent))}\n"
        f'exec {_command(command, f"$SLURM_ARRAY_TASK_ID/{tasks}")}\n'
    )
    return [f"slurm: sbatch {shlex.quote(str(file))}",
            f"slurm: when the job is done: {_fill(out)}"]


def kubernetes(
    directory: Path, sweep: Sweep, out: Path, command: list[str], tasks: int
) -> list[str]:
    """DIR/NAME.yaml (JSON, which is YAML); what to do with it."""
    file = _home(directory) / f"{sweep.name}.yaml"
    files = [path.resolve().parent for path in (sweep.path, sweep.base)]
    shared = {str(path): f"dir{number}" for number, path in enumerate(dict.fromkeys(
        [cache.REPO, cache.cache_dir().parent, out,
         *(path for path in files if not path.is_relative_to(cache.REPO))]))}
    worker = f'exec {_command(command, f"$((JOB_COMPLETION_INDEX + 1))/{tasks}")}'
    container: dict[str, Any] = {
        "name": "worker",
        "image": "debian:13",
        "command": ["sh", "-ec", worker],
        "env": [{"name": "XDG_CACHE_HOME", "value": str(cache.cache_dir().parent)}],
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
        "volumeMounts": [{"name": name, "mountPath": path} for path, name in shared.items()],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": sweep.name.replace("_", "-").rstrip("-")},
        "spec": {
            "completionMode": "Indexed",
            "completions": tasks,
            "parallelism": tasks,
            "backoffLimit": 3 * tasks,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [container],
                "volumes": [{"name": name, "hostPath": {"path": path, "type": "Directory"}}
                            for path, name in shared.items()],
            }},
        },
    }
    out.mkdir(parents=True, exist_ok=True)
    head = (
        f"# Sweep {sweep.name}: {tasks} workers. The directories below `volumes` must be the same\n"
        "# on all nodes: change hostPath to what your cluster shares them by, and the image to\n"
        "# one that has what setup/setup.sh installs.\n"
    )
    file.write_text(head + json.dumps(job, indent=1) + "\n")
    return [f"kubernetes: kubectl apply -f {shlex.quote(str(file))}",
            f"kubernetes: when the job is done: {_fill(out)}"]


def _worker(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Runs on a machine of the cluster."""
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def dask(address: str, commands: list[list[str]], say: Say) -> None:
    """One worker for each command, wherever the cluster puts it."""
    try:
        import distributed  # type: ignore[import-not-found,unused-ignore]
    except ImportError as err:
        pip = cache.cache_dir() / "venv" / "bin" / "pip"
        raise LabError(
            f"--dask needs the package distributed, which is not installed; run {pip} install "
            "distributed, or take --slurm, --kubernetes, or no option at all"
        ) from err
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as err:
        raise LabError(f"--dask {address}: no scheduler answers there: {err}") from err
    environment = {"XDG_CACHE_HOME": str(cache.cache_dir().parent)}
    with client:
        futures = [client.submit(_worker, words, environment, pure=False) for words in commands]
        for number, future in enumerate(distributed.as_completed(futures), start=1):
            status, said = future.result()
            say(f"dask: {number} of {len(futures)} workers ended")
            if status not in (0, 1):
                raise LabError(f"a worker ended with status {status}: {said.strip()[-300:]}")
