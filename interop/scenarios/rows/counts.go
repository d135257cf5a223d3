package rows

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

// counts are figures: how many sessions each server holds, and how many hang because theirs is full.
type counts struct {
	byServer map[string]int
	hanging  int
}

func (c counts) String() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(c.byServer)) {
		if text != "" {
			text += "/"
		}
		text += fmt.Sprint(c.byServer[name])
	}
	if c.hanging > 0 {
		text += fmt.Sprintf(", %d hang", c.hanging)
	}
	return text
}

// MarshalJSON gives the counts by server.
func (c counts) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Sessions map[string]int `json:"sessions"`
		Hanging  int            `json:"hanging"`
	}{c.byServer, c.hanging})
}

// differs says how c is not as exact has it.
func (c counts) differs(exact counts) []string {
	if maps.Equal(c.byServer, exact.byServer) && c.hanging == exact.hanging {
		return nil
	}
	return []string{fmt.Sprintf("servers hold %s, exact gives %s", c, exact)}
}

// stuck is how long no session must open until the rest is taken to hang: those that do not hang take milliseconds.
const stuck = 2 * time.Second

// openAll opens n sessions at once and waits until each is open or hangs, which is when none has opened for so long. None
// is left.
func openAll(ctx context.Context, c *leastconntest.Channel, n int, patience time.Duration) (counts, error) {
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
	got := counts{byServer: map[string]int{}}
	// Looks are counted, not time: while the machine does not run this process, there are none.
	look := time.NewTicker(lookEach)
	defer look.Stop()
	for left, looks := n, 0; left > 0; {
		select {
		case s := <-opened:
			got.byServer[s.Node()]++
			left, looks = left-1, 0
		case err := <-failed:
			return got, err
		case <-look.C:
			if looks++; looks > int(patience/lookEach) {
				got.hanging = left
				return got, nil
			}
		}
	}
	return got, nil
}

// lookEach is how often to look whether a session has opened.
const lookEach = 20 * time.Millisecond
