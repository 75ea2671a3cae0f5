# SPDX-License-Identifier: GPL-2.0
"""The guest's image: its lock, its key, and that a guest on it sees nothing else of the host."""

import json
import sys
from pathlib import Path

import pytest

from paqm_lab import apt, cache, image, kernel, lab, uml
from paqm_lab.errors import LabError

A = image.Pin("aa", "1:2.3-4+deb12u1", 10, "0" * 64)
B = image.Pin("bb", "1", 20, "f" * 64)


def test_a_lock_is_read_as_it_was_written() -> None:
    assert image.parse_lock(image.write_lock([B, A])) == [A, B]


@pytest.mark.parametrize("line", ["a 1 10", "a 1 ten " + "0" * 64, "a 1 10 abc", "a 1 10 x y"])
def test_a_line_that_is_no_pin_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(LabError, match=r"packages\.lock:2: want NAME VERSION SIZE SHA256"):
        image.parse_lock("# comment\n" + line)


def test_an_empty_lock_is_refused() -> None:
    with pytest.raises(LabError, match="--lock"):
        image.parse_lock("# nothing\n")


def test_the_lock_holds_all_that_is_wanted_and_no_address() -> None:
    text = image.LOCK.read_text()
    names = {pin.name for pin in image.parse_lock(text)}
    assert set(image.roots(image.ROOTS.read_text())) <= names
    assert "://" not in text and "libc6" in names


def test_another_version_is_another_image() -> None:
    newer = image.Pin("bb", "2", 20, "f" * 64)
    assert image.key_of([A, B]) == image.key_of([A, B]) != image.key_of([A, newer])


def test_what_the_hosts_umask_hides_guests_see(tmp_path: Path) -> None:
    """paqmd in a guest runs as nobody: in an image that only its owner may read it found no /proc.
    """
    make = "import sys; from pathlib import Path; from paqm_lab import image; "
    make += "image.start_empty(Path(sys.argv[1]))"
    root = tmp_path / "a"
    words = ["sh", "-c", 'umask 077; exec "$0" "$@"', sys.executable, "-c", make, str(root)]
    apt.run(words, "making a root", cwd=cache.REPO / "testbed")
    assert [(root / name).stat().st_mode & 0o777 for name in (".", "usr/bin")] == [0o755, 0o755]


def test_apts_list_is_read() -> None:
    text = (
        "Reading package lists...\n'http://x/pool/b_1_amd64.deb' b_1_amd64.deb 20 MD5Sum:1\n"
        "'http://x/a_1%3a2.3-4+deb12u1_all.deb' a_1%3a2.3-4+deb12u1_all.deb 10 SHA256:2\n"
    )
    assert apt._parse(text) == [apt.Package("a", A.version, 10), apt.Package("b", "1", 20)]


def archive_of(directory: Path, packages: str) -> apt.Archive:
    """An archive of apt's own with these packages, of which there is no file."""
    (directory / "Packages").write_text(packages)
    archive = apt.Archive(directory / "apt")
    for name in ("lists/partial", "cache/archives/partial"):
        (archive.scratch / name).mkdir(parents=True)
    (archive.scratch / "status").touch()
    (archive.scratch / "list").write_text(f"deb [trusted=yes] copy:{directory} ./\n")
    apt.run(["apt-get", *archive.options, "update"], "reading the list")
    return archive


def entry(name: str, version: str, depends: str) -> str:
    return (
        f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: x <x@example.org>\n"
        f"Depends: {depends}\nFilename: ./{name}_{version}.deb\nSize: 10\nSHA256: {'0' * 64}\n"
        "Description: x\n\n"
    )


def test_packages_for_an_image_whose_own_have_been_mended_since(tmp_path: Path) -> None:
    """A library of the image got a fix; its headers, which only tests want, are of that version.
    Debian keeps the former library, but not its headers: a fresh machine could build no image."""
    packages = entry("base", "1", "lib") + entry("lib", "1", "base") + entry("lib", "2", "base")
    archive = archive_of(tmp_path, packages + entry("headers", "2", "lib (= 2)"))
    lib, headers = apt.Package("lib", "2", 10), apt.Package("headers", "2", 10)
    assert image.needed(archive, ["headers"], {"base": "1", "lib": "2"}) == [headers]
    found = image.needed(archive, ["headers"], {"base": "1", "lib": "1"})
    assert sorted(found, key=lambda package: package.name) == [headers, lib]
    with pytest.raises(LabError, match="nowhere"):
        image.needed(archive, ["nowhere"], {"base": "1"})


def test_another_release_comes_from_the_same_sites() -> None:
    own = [("http://m", "trixie"), ("http://m", "trixie-updates"), ("http://s", "trixie-security")]
    assert apt.sources_of("bookworm", own) == [
        ("http://m", "bookworm"), ("http://m", "bookworm-updates"),
        ("http://s", "bookworm-security"),
    ]
    assert len(apt.sources_of("bookworm", own[:1])) == 2


def test_security_fixes_may_be_beside_the_archive() -> None:
    main, security = ("http://m/debian", "bookworm"), ("http://s", "bookworm-security")
    assert apt.beside([main]) == [("http://m/debian-security", "bookworm-security")]
    assert apt.beside([main, security]) == []
    assert apt.beside([("http://m/archive", "bookworm")]) == []


@pytest.fixture(scope="module")
def house() -> lab.Lab:
    return lab.ready(print, modules=False)


def inside(house: lab.Lab, out: Path, script: str) -> str:
    """What a shell on the image says."""
    job = uml.Job(
        directory=out / "guest", command=["sh", "-c", script], root=house.image.root,
        places=house.places(out), cwd=Path("/"),
    )
    result = uml.run(house.kernel, job)
    assert result.good, result.explain() + result.output.read_text()
    return result.output.read_text()


@pytest.mark.lab
def test_a_guest_changes_its_results_only(house: lab.Lab, tmp_path: Path) -> None:
    """As SECURITY.md says of what somebody else's scenario could do."""
    script = 'for place in /run/lab/*; do touch "$place/written" 2>/dev/null && echo "$place"; done'
    assert inside(house, tmp_path, f"{script}; true").split() == ["/run/lab/out"]
    assert (tmp_path / "written").exists()


@pytest.mark.lab
def test_a_guest_sees_nothing_of_the_host(house: lab.Lab, tmp_path: Path) -> None:
    said = inside(house, tmp_path, f"""
        ls -d {cache.REPO} {cache.cache_dir()} {tmp_path} 2>/dev/null
        touch /usr/new 2>/dev/null && echo "the image can be written"
        cat /proc/mounts /proc/cmdline
        ls /run/lab
        id nobody
    """)
    assert said.endswith("build  cache  out  repo\nuid=65534(nobody) gid=65534(nogroup) "
                         "groups=65534(nogroup)\n")
    for path in (cache.REPO, cache.cache_dir(), tmp_path, house.image.root):
        assert f"{path}/" not in said and f"{path} " not in said
    assert "can be written" not in said


@pytest.mark.lab
def test_what_a_guest_leaves_in_out_is_there(house: lab.Lab, tmp_path: Path) -> None:
    house.tell({"a": [str(cache.REPO / "docs"), 1], "b": {"c": tmp_path / "x"}}, tmp_path)
    inside(house, tmp_path, "cp /run/lab/out/config.json /run/lab/out/copy.json")
    told = json.loads((tmp_path / "copy.json").read_text())
    assert told == {"a": ["/run/lab/repo/docs", 1], "b": {"c": "/run/lab/out/x"}}


@pytest.mark.lab
def test_the_programs_are_those_of_the_image(house: lab.Lab, tmp_path: Path) -> None:
    said = inside(house, tmp_path, """
        export GST_REGISTRY_UPDATE=no GST_REGISTRY=/run/lab/build/lab/gstreamer-registry.bin
        ldd /run/lab/build/streamer/paqm-streamer | grep -c "=> /lib"
        ldd /run/lab/build/streamer/paqm-streamer | grep "not found"
        GST_PLUGIN_PATH=/run/lab/build/streamer gst-inspect-1.0 paqmh264enc | head -1
        node --version
    """)
    assert "not found" not in said and "Factory Details" in said
    assert f"v{house.image.versions['nodejs'].partition('+')[0]}" in said
    assert kernel.ensure("lab", print).version == house.versions()["kernel"]


@pytest.mark.parametrize("which", list(image.EXTRAS))
def test_another_lock_only_adds(which: str) -> None:
    named, extra = image.EXTRAS[which]
    below = {pin.name for pin in image.parse_lock(image.LOCK.read_text())}
    own = {pin.name for pin in image.parse_lock(extra.read_text())}
    assert not below & own
    assert set(image.roots(named.read_text())) <= own


@pytest.fixture(scope="module")
def rooms() -> lab.Lab:
    return lab.for_tests(print, modules=False)


def command(rooms: lab.Lab, out: Path, *words: str) -> str:
    """What a command says, with `out` as a directory that it may write to."""
    result = uml.run(rooms.kernel, rooms.command(list(words), out / "job", [out]))
    assert result.good, result.explain() + result.output.read_text()
    return result.output.read_text()


@pytest.mark.lab
def test_a_command_sees_nothing_else_of_the_host(rooms: lab.Lab, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(
        f'#!/bin/sh\nls -d {cache.REPO} {tmp_path} /root/* 2>/dev/null\nls -1 /run/lab "$1"; pwd\n'
        'touch "$1/new" && echo "PAQM_REPO=$PAQM_REPO" && ls build/lab/spec_traffic\n'
    )
    script.chmod(0o755)
    assert command(rooms, tmp_path, str(script), str(tmp_path)) == (
        "/run/lab:\nbuild\ncache\ndir0\nrepo\n\n/run/lab/dir0:\njob\nscript\n"
        "/run/lab/repo\nPAQM_REPO=/run/lab/repo\nbuild/lab/spec_traffic\n"
    )
    assert (tmp_path / "new").exists()


@pytest.mark.lab
def test_a_command_of_which_a_guest_sees_nothing_is_refused(
    rooms: lab.Lab, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.touch()
    with pytest.raises(LabError, match="--dir"):
        rooms.command([str(script)], tmp_path, [])
    with pytest.raises(LabError, match="chmod"):
        rooms.command([str(script)], tmp_path, [tmp_path])


@pytest.mark.lab
def test_what_tests_need_is_not_in_the_image_of_scenarios(
    house: lab.Lab, rooms: lab.Lab, tmp_path: Path
) -> None:
    """Their image has links to the files of the other: none of these was written through one."""
    said = command(rooms, tmp_path, "sh", "-c", "jq --version; tshark --version; id -u tcpdump; "
                   "python3 -m pytest --version; python3 -c 'import matplotlib'")
    assert said.startswith("jq-") and "TShark" in said and "\n4712\n" in said and "pytest" in said
    assert "tcpdump" not in (house.image.root / "etc" / "passwd").read_text()
    made = (house.image.root.parent / "built.json").stat().st_mtime
    files = [path for path in house.image.root.rglob("*") if path.is_file()]
    assert len(files) > 10000 and not [path for path in files if path.lstat().st_mtime > made]
