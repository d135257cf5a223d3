package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// placed are figures: how many sessions each server holds, and how many hang because theirs is full.
type placed struct {
	counts  map[string]int
	hanging int
}

func (p placed) String() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(p.counts)) {
		if text != "" {
			text += "/"
		}
		text += fmt.Sprint(p.counts[name])
	}
	if p.hanging > 0 {
		text += fmt.Sprintf(", %d hang", p.hanging)
	}
	return text
}

// MarshalJSON gives the counts by server.
func (p placed) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Sessions map[string]int `json:"sessions"`
		Hanging  int            `json:"hanging"`
	}{p.counts, p.hanging})
}

// differs says how p is not as exact has it.
func (p placed) differs(exact placed) []string {
	if maps.Equal(p.counts, exact.counts) && p.hanging == exact.hanging {
		return nil
	}
	return []string{fmt.Sprintf("servers hold %s, exact gives %s", p, exact)}
}

// stuck is how long no session must open until the rest is taken to hang: those that do not hang take a millisecond.
const stuck = time.Second

// openAll opens n sessions at once and waits until each is open or hangs. None is left.
func openAll(ctx context.Context, c *leastconntest.Channel, n int) (placed, error) {
	ctx, cancel := context.WithCancel(ctx)
	var opening sync.WaitGroup
	defer opening.Wait()
	defer cancel()
	opened := make(chan *leastconntest.Stream)
	failed := make(chan error, n)
	for range n {
		opening.Go(func() {
			s, err := c.Open(ctx)
			if err != nil {
				failed <- err
				return
			}
			select {
			case opened <- s:
			case <-ctx.Done():
			}
		})
	}
	got := placed{counts: map[string]int{}}
	for left := n; left > 0; left-- {
		select {
		case s := <-opened:
			got.counts[s.Node()]++
		case err := <-failed:
			return got, err
		case <-time.After(stuck):
			got.hanging = left
			return got, nil
		}
	}
	return got, nil
}
