package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// failures are figures: the share of calls that fail.
type failures struct{ percent float64 }

func (f failures) String() string { return fmt.Sprintf("%.0f %% fail", f.percent) }

// MarshalJSON gives the share.
func (f failures) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		FailedPercent float64 `json:"failedPercent"`
	}{f.percent})
}

// What the row of the failing server is measured by.
const (
	failingWorkers = 12
	failingRun     = 1500 * time.Millisecond // of which the last part counts
	failingCounted = 500 * time.Millisecond
	failingMost    = 5.0 // percent
)

// failingRow is a server that fails at once, and so is always the one with the fewest in flight.
func failingRow() row {
	return row{
		name: "failing server", change: "a fails at once, b and c take 20 ms; 12 workers call one after another",
		measure: "share of calls that fail", want: fmt.Sprintf("at most %.0f %%", failingMost), exact: failures{failingMost},
		play: guarded(func(ctx context.Context, p trial.Policy, nodes []*leastconntest.Node) cell {
			c, err := leastconntest.Dial(leastconntest.ChannelConfig{
				ServiceConfig: p.ServiceConfig(), Endpoints: leastconntest.Endpoints(nodes...),
			})
			if err != nil {
				return cell{err: err}
			}
			defer c.Close()
			if err := c.WaitServed(ctx, nodes...); err != nil {
				return cell{err: err}
			}
			nodes[0].SetFail(codes.Unavailable)
			got, err := work(ctx, c)
			if err != nil {
				return cell{err: err}
			}
			var off []string
			if got.percent > failingMost {
				off = append(off, fmt.Sprintf("%.1f %% of calls fail, at most %.0f %% should", got.percent, failingMost))
			}
			return cell{gave: got, off: off}
		}, leastconntest.Options{Name: "a"},
			leastconntest.Options{Name: "b", Delay: 20 * time.Millisecond}, leastconntest.Options{Name: "c", Delay: 20 * time.Millisecond}),
	}
}

// work lets the workers call, with a pause of 2 ms after a failure, and measures the last part.
func work(ctx context.Context, c *leastconntest.Channel) (failures, error) {
	ctx, cancel := context.WithTimeout(ctx, failingRun)
	defer cancel()
	counted := time.Now().Add(failingRun - failingCounted)
	var calls, failed atomic.Int64
	errs := make(chan error, failingWorkers)
	var workers sync.WaitGroup
	for range failingWorkers {
		workers.Go(func() {
			for ctx.Err() == nil {
				_, err := c.Unary(context.WithoutCancel(ctx))
				if err != nil && status.Code(err) != codes.Unavailable {
					errs <- err
					return
				}
				if time.Now().After(counted) {
					calls.Add(1)
					if err != nil {
						failed.Add(1)
					}
				}
				if err != nil {
					time.Sleep(2 * time.Millisecond)
				}
			}
		})
	}
	workers.Wait()
	select {
	case err := <-errs:
		return failures{}, err
	default:
	}
	return failures{percent: 100 * float64(failed.Load()) / float64(max(1, calls.Load()))}, nil
}
