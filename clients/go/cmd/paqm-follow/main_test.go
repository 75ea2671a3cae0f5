// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"paqm.example/client"
)

// A number that does not fit would name another's flow.
func TestWidths(t *testing.T) {
	c, err := client.Open(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, line := range []string{
		"add 5004 192.0.2.7 6000 4294967295 0 1000000",
		"limits 1 0 2000000",
		"timing 1 1000000 4000000",
	} {
		if err := obey(c, strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{
		"add 70540 192.0.2.7 6000 1 0 1000000",
		"add 5004 192.0.2.7 71536 1 0 1000000",
		"add 5004 192.0.2.7 6000 4294967297 0 1000000",
		"add 5004 192.0.2.7 6000 1 0",
		"timing 1 4294967296 1",
		"timing 1 1 18446744073709551615",
		"timing 1 1",
		"limits 1 0 18446744073709551616",
		"remove 1 2",
		"remove",
		"what 1",
	} {
		if obey(c, strings.Fields(line)) == nil {
			t.Errorf("%s is taken", line)
		}
	}
	for _, line := range []string{"status 1 1 4294967296 30", "status 1 1 1 4294967296"} {
		if err := obey(c, strings.Fields(line)); !errors.Is(err, strconv.ErrRange) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
