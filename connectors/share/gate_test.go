// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package share

import (
	"testing"
	"time"
)

var (
	layers = []float64{150e3, 310e3, 650e3, 1360e3}
	begin  = time.Unix(0, 0)
)

func advice(bps float64) Advice { return Advice{1, bps, 250 * time.Millisecond} }

func TestFallIsAtOnceAndForAll(t *testing.T) {
	g := NewGate()
	for i := 0; i < 50; i++ {
		if got := g.Layer(&Flow{}, advice(400e3), layers, 3, begin); got != 1 {
			t.Fatalf("layer %d, expected 1", got)
		}
	}
	if got := g.Layer(&Flow{}, advice(1), layers, 3, begin); got != 0 {
		t.Fatalf("layer %d, expected the lowest", got)
	}
}

// Fifty flows on the lowest layer hear the same large rate at the same moment: together they rise by a
// small part, and the others after the router has measured.
func TestRisesAreGrantedSomeAtATime(t *testing.T) {
	g, flows, at := NewGate(), make([]Flow, 50), make([]int, 50)
	rise := func(now time.Time) (sum float64) {
		for i := range flows {
			before := layers[at[i]]
			at[i] = g.Layer(&flows[i], advice(1.15e6), layers, at[i], now)
			sum += layers[at[i]] - before
		}
		return sum
	}
	rise(begin) // the first asks before the others are known
	second := begin.Add(1250 * time.Millisecond)
	if sum := rise(second); sum < 400e3 || sum > 700e3 {
		t.Errorf("%.0f bit/s were granted of 7.5 Mbit/s that are used", sum)
	}
	if sum := rise(second.Add(time.Second)); sum > 200e3 {
		t.Errorf("%.0f bit/s more before the router has measured", sum)
	}
	if sum := rise(second.Add(1250 * time.Millisecond)); sum < 400e3 {
		t.Errorf("%.0f bit/s in the next round", sum)
	}
	if got := g.Layer(&Flow{}, Advice{2, 1.15e6, time.Second}, layers, 0, second); got != 1 {
		t.Error("another router's flows wait, too")
	}
}

func TestTheLowerOnesRiseFirst(t *testing.T) {
	g, high, low := NewGate(), Flow{}, Flow{}
	g.Layer(&low, advice(1), layers, 0, begin)
	if got := g.Layer(&high, advice(10e6), layers, 2, begin.Add(time.Second)); got != 2 {
		t.Fatal("the higher one rose first")
	}
	if got := g.Layer(&low, advice(10e6), layers, 0, begin.Add(9*time.Second)); got != 1 {
		t.Fatal("the lower one did not rise")
	}
	g.Leave(&low)
	if got := g.Layer(&high, advice(10e6), layers, 2, begin.Add(20*time.Second)); got != 3 {
		t.Fatal("alone it does not rise")
	}
}

func TestOneStepAtATimeAndWithRoom(t *testing.T) {
	g := NewGate()
	if got := g.Layer(&Flow{}, advice(100e6), layers, 0, begin); got != 1 {
		t.Errorf("layer %d, expected the next one", got)
	}
	if got := g.Layer(&Flow{}, advice(320e3), layers, 0, begin); got != 0 {
		t.Errorf("layer %d without room", got)
	}
}

// A flow whose rises fail tries ever less often; the others do not wait for it.
func TestWhoFallsWaits(t *testing.T) {
	g, f, at := NewGate(), Flow{}, begin
	for want := pauseMin; want <= pauseMax; want *= 2 {
		if g.Layer(&f, advice(1e6), layers, 0, at) != 1 {
			t.Fatalf("no rise after %v", at.Sub(begin))
		}
		g.Layer(&f, advice(200e3), layers, 1, at)
		if g.Layer(&f, advice(1e6), layers, 0, at.Add(want-1)) != 0 {
			t.Fatalf("a rise within %v", want)
		}
		at = at.Add(max(want, 2*time.Second)) // and the router's round
	}
	if g.Layer(&Flow{}, advice(1e6), layers, 0, at) != 1 {
		t.Error("another flow waits, too")
	}
}
