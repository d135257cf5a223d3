package integration

import (
	"context"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// traffic is RPCs without a pause, each from one of several callers.
type traffic struct {
	env     *env
	callers int
	before  int64 // RPCs in flight of others

	ctx   context.Context // over when no more RPCs are to start
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu     sync.Mutex
	done   map[string]int       // by server
	failed map[codes.Code]error // one of each code
}

func (e *env) traffic(callers int) *traffic {
	tr := &traffic{env: e, callers: callers, before: e.snapshot().InFlight, done: map[string]int{}, failed: map[codes.Code]error{}}
	tr.ctx, tr.stop = context.WithCancel(e.Context())
	e.Cleanup(func() { tr.end() })
	for range callers {
		tr.ended.Go(func() {
			for i := 0; tr.ctx.Err() == nil; i++ {
				by, err := tr.rpc(i % 3)
				tr.mu.Lock()
				if err != nil {
					tr.failed[status.Code(err)] = err
				} else {
					tr.done[by]++
				}
				tr.mu.Unlock()
			}
		})
	}
	return tr
}

// rpc makes an RPC: of kind 0 a unary one, of 1 a stream that is cancelled, of 2
// a stream to its end.
func (tr *traffic) rpc(kind int) (by string, err error) {
	if kind == 0 {
		return tr.env.unary()
	}
	s, err := leastconntest.Open(tr.env.ctx, tr.env.conn)
	if err != nil {
		return "", err
	}
	defer s.Cancel()
	for range 3 {
		if err := s.Ping(); err != nil {
			return "", err
		}
	}
	if kind == 1 {
		return s.Node(), nil
	}
	return s.Node(), s.End()
}

// until waits for a condition. Meanwhile no more RPCs are counted than there
// can be, one for each caller.
func (tr *traffic) until(what string, condition func() bool) {
	tr.env.Helper()
	wait(tr.env.T, what, func() bool {
		inFlight := tr.env.snapshot().InFlight - tr.before
		require.GreaterOrEqual(tr.env, inFlight, int64(0))
		require.LessOrEqual(tr.env, inFlight, int64(tr.callers))
		return condition()
	})
}

// through waits until so many more RPCs have succeeded on a server.
func (tr *traffic) through(server string, more int) {
	tr.env.Helper()
	count := func() int {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		return tr.done[server]
	}
	want := count() + more
	tr.until(strconv.Itoa(more)+" RPCs on "+server, func() bool { return count() >= want })
}

// end stops the traffic and returns the errors.
func (tr *traffic) end() map[codes.Code]error {
	tr.stop()
	tr.ended.Wait()
	return tr.failed
}

// disturbance is what happens to a system while RPCs go through it.
type disturbance struct {
	name     string
	kind     kind
	settings settings
	do       func(*traffic, system)
	failures []codes.Code // that are no fault
}

func ages(tr *traffic, s system) {
	tr.until("connections have aged often", func() bool { begun, _ := tr.env.conns.of(s); return begun > 20 })
}

func reloads(tr *traffic, s system) {
	for range 3 {
		tr.through(s.Name(), 50)
		old := s.(*proxy).reload()
		tr.through(s.Name(), 50)
		s.(*proxy).waitGone(old)
	}
}

func losesWorkers(tr *traffic, s system) {
	for range 5 {
		tr.through(s.Name(), 50)
		s.(*proxy).signalWorker(syscall.SIGKILL)
	}
}

var disturbances = []disturbance{
	{name: "ages", kind: python, settings: settings{Flags: []string{"--max-age-ms", "20"}}, do: ages},
	{name: "ages", kind: cpp, settings: settings{Flags: []string{"--max-age-ms", "20"}}, do: ages},
	{name: "ages", kind: node, settings: settings{Flags: []string{"--max-age-ms", "20"}}, do: ages},
	{name: "reloads", kind: nginx, do: reloads},
	{name: "reloads", kind: haproxy, do: reloads},
	{name: "loses workers", kind: nginx, do: losesWorkers, failures: []codes.Code{codes.Unavailable}},
}

// While a system replaces its connections or its processes again and again, no
// RPC fails but those it breaks, and no count stays.
func TestSystemsUnderTraffic(t *testing.T) {
	for _, d := range disturbances {
		t.Run(d.kind.name+"/"+d.name, func(t *testing.T) {
			t.Parallel()
			s := d.kind.start(t, d.settings)
			e := dialReady(t, startNodes(t, "near")[0], s)
			tr := e.traffic(8)
			d.do(tr, s)
			for code, err := range tr.end() {
				require.Contains(t, d.failures, code, "%v", err)
			}
			e.counts(0, 0)
		})
	}
}
