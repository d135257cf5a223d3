package rows

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
	failingCalls   = 900
	failingMost    = 5.0         // percent
	failingPenalty = time.Second // least_conn's default
)

// failingRow is a server that fails at once, and so is always the one with the fewest in flight.
func failingRow() Row {
	delay := 20 * time.Millisecond
	return Row{
		Name: "failing server", Change: "a fails at once, b and c take 20 ms; 12 workers call one after another",
		Measure: "share of calls that fail", Want: fmt.Sprintf("at most %.0f %%", failingMost), Exact: failures{failingMost}, Bounded: true,
		Play: onNodes(func(ctx context.Context, e *env) (Figures, []string, error) {
			if err := e.list(ctx, leastconntest.Endpoints(e.nodes...), e.nodes...); err != nil {
				return nil, nil, err
			}
			e.nodes[0].SetFail(codes.Unavailable)
			begun := time.Now()
			failed, err := callAll(ctx, e.Channel)
			if err != nil {
				return nil, nil, err
			}
			got := failures{percent: 100 * float64(failed) / failingCalls}
			if failed <= failuresAllowed(time.Since(begun)) {
				return got, nil, nil
			}
			return got, []string{fmt.Sprintf("%.1f %% of calls fail, at most %.0f %% should", got.percent, failingMost)}, nil
		}, nil, leastconntest.Options{Name: "a"}, leastconntest.Options{Name: "b", Delay: delay}, leastconntest.Options{Name: "c", Delay: delay}),
	}
}

// failuresAllowed is how many calls may fail that took a time together. Once a penalty is over, a failing server gets at
// most as many calls as there are workers. On a machine so busy that calls take long, that is more than the share.
func failuresAllowed(elapsed time.Duration) int {
	penalties := 1 + int(elapsed/failingPenalty)
	return max(int(failingCalls*failingMost/100), failingWorkers*penalties)
}

// callAll lets the workers call, with a pause of 2 ms after a failure, and returns how many calls failed.
func callAll(ctx context.Context, c *leastconntest.Channel) (failed int, err error) {
	var begun, failures atomic.Int64
	errs := make(chan error, failingWorkers)
	var workers sync.WaitGroup
	for range failingWorkers {
		workers.Go(func() {
			for begun.Add(1) <= failingCalls {
				_, err := c.Unary(ctx)
				switch status.Code(err) {
				case codes.OK:
				case codes.Unavailable:
					failures.Add(1)
					time.Sleep(2 * time.Millisecond)
				default:
					errs <- err
					return
				}
			}
		})
	}
	workers.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return int(failures.Load()), nil
	}
}
