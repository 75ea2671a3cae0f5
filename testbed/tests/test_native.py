# SPDX-License-Identifier: GPL-2.0
"""The compiler by the host's kernel: it sees what a guest sees, and makes the same files."""

from pathlib import Path

import pytest

from paqm_lab import cache, image, kernel, native, uml

pytestmark = pytest.mark.lab

ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin", "TMPDIR": "/run/tmp", "PAQM_OWN": "yes"}
SOURCE = "testbed/rivals/webrtc/vclock.c"


@pytest.fixture(scope="module")
def made() -> tuple[kernel.Kernel, Path]:
    built = kernel.ensure("lab", print)
    return built, image.ensure(built, print).root


def on_image(root: Path, place: Path, script: str) -> tuple[bool, str]:
    """How a script ended, and what it said."""
    build = place / "build"
    build.mkdir(exist_ok=True)
    places = {"repo": cache.REPO, "build": build}
    command = ["sh", "-c", script]
    good = native.run(root, places, ("build",), ENVIRONMENT, command, place / "log")
    return good, (place / "log").read_text()


@pytest.fixture(scope="module", autouse=True)
def allowed(made: tuple[kernel.Kernel, Path], tmp_path_factory: pytest.TempPathFactory) -> None:
    if not on_image(made[1], tmp_path_factory.mktemp("allowed"), "true")[0]:
        pytest.skip("this host allows no namespaces")


def test_it_sees_the_image_and_its_places(
    made: tuple[kernel.Kernel, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAQM_HOSTS", "yes")
    script = f'echo /run/lab/* "$PAQM_OWN$PAQM_HOSTS"; ls -d {tmp_path}; cat /init'
    good, said = on_image(made[1], tmp_path, script)
    first, _, rest = said.partition("\n")
    assert first == "/run/lab/build /run/lab/repo yes"
    assert f"cannot access '{tmp_path}'" in rest
    assert good and (image.HOME / "init").read_text() in rest


@pytest.mark.parametrize("place", ["/", "/usr", "/run/lab/repo"])
def test_it_writes_to_what_is_its_own_only(
    made: tuple[kernel.Kernel, Path], tmp_path: Path, place: str
) -> None:
    assert on_image(made[1], tmp_path, "echo here >/run/lab/build/file")[0]
    assert (tmp_path / "build" / "file").read_text() == "here\n"
    good, said = on_image(made[1], tmp_path, f"echo here >{place}/native-file")
    assert not good and "Read-only file system" in said


def test_its_files_are_those_of_a_guest(
    made: tuple[kernel.Kernel, Path], tmp_path: Path
) -> None:
    command = f"gcc -O2 -g -shared -fPIC -o /run/lab/build/file /run/lab/repo/{SOURCE}"
    good, said = on_image(made[1], tmp_path, command)
    assert good, said
    guests = tmp_path / "guest"
    guests.mkdir()
    job = uml.Job(
        directory=tmp_path / "job", command=["sh", "-c", command], root=made[1],
        places={"repo": cache.REPO, "build": guests}, writable=("build",),
        environment=ENVIRONMENT, cwd=Path("/"), real_time=True,
    )
    result = uml.run(made[0], job)
    assert result.good, result.explain()
    assert (guests / "file").read_bytes() == (tmp_path / "build" / "file").read_bytes()


def test_an_end_with_an_error_is_one(made: tuple[kernel.Kernel, Path], tmp_path: Path) -> None:
    assert on_image(made[1], tmp_path, "echo why >&2; exit 3") == (False, "why\n")
