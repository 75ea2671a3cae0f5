# SPDX-License-Identifier: GPL-2.0
"""Which of Debian's packages of Go is taken."""

from paqm_lab import golang


def test_newest() -> None:
    names = ["golang-1.9-go", "golang-1.24-go", "golang-1.26-go", "golang-1.27-doc", "golang-go"]
    assert golang.newest(names) == (1, 26)
    assert golang.newest(["golang-1.23-go", "golang-go"]) is None
    assert golang.newest([]) is None
