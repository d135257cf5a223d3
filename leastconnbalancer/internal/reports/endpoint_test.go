package reports_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/reports"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// conn is a connection that a test listens on.
type conn struct {
	balancer.SubConn // nil; embedded because the interface demands it
	name             string
}

// ears are what listens, in a bubble's time.
type ears struct {
	*testing.T
	start time.Time

	mu      sync.Mutex
	open    map[string]reports.Report // by the connection's name
	history []string
	begun   []time.Duration
	got     []string // reports that came through
}

// listen runs a test with connections that listen when they are told to.
func listen(t *testing.T, test func(*ears)) {
	synctest.Test(t, func(t *testing.T) {
		e := &ears{T: t, start: time.Now(), open: map[string]reports.Report{}}
		reports.Register(func(sc balancer.SubConn, interval time.Duration, report reports.Report) func() {
			name := sc.(*conn).name
			e.mu.Lock()
			defer e.mu.Unlock()
			e.open[name] = report
			e.begun = append(e.begun, time.Since(e.start))
			e.history = append(e.history, fmt.Sprint("+", name, " ", interval))
			return sync.OnceFunc(func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				delete(e.open, name)
				e.history = append(e.history, "-"+name)
			})
		})
		test(e)
	})
}

// endpoints returns the ids of n endpoints of a ledger.
func (e *ears) endpoints(n int) (ids []state.EndpointID) {
	set := state.Open("").NewEndpointSet("")
	e.Cleanup(set.Close)
	var list []state.Identity
	for i := range n {
		list = append(list, state.Identity{Addrs: []string{fmt.Sprint(i)}})
	}
	for _, m := range set.Update(nil, list) {
		ids = append(ids, m.EndpointID())
	}
	return ids
}

func (e *ears) subscribe(id state.EndpointID, name string, interval time.Duration) *reports.Subscription {
	return reports.Subscribe(id, &conn{name: name}, interval, func(inFlight int64, rps float64) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.got = append(e.got, fmt.Sprint(name, " ", inFlight, " ", rps))
	})
}

// passes lets time go by and says what began and ended in it.
func (e *ears) passes(d time.Duration, want ...string) {
	e.Helper()
	time.Sleep(d)
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.Equal(e, want, e.history)
	e.history = nil
}

// tell has the connection report.
func (e *ears) tell(name string, inFlight int64) {
	e.mu.Lock()
	report := e.open[name]
	e.mu.Unlock()
	require.NotNil(e, report, name)
	report(inFlight, 0.5)
}

const interval = 10 * time.Second

// Connections that are made at one moment listen from moments on that are spread over an interval.
func TestSubscriptionsAreStaggered(t *testing.T) {
	listen(t, func(e *ears) {
		for i, id := range e.endpoints(400) {
			defer e.subscribe(id, fmt.Sprint(i), interval).Cancel()
		}
		time.Sleep(interval)
		synctest.Wait()
		var tenths [10]int
		for _, at := range e.begun {
			require.Less(t, at, interval)
			tenths[at/(interval/10)]++
		}
		require.Len(t, e.begun, 400)
		require.NotContains(t, tenths, 0, "%v", tenths)
	})
}

// One connection of an endpoint listens. The next one takes over when it goes, where it would have been
// told next.
func TestOneListens(t *testing.T) {
	listen(t, func(e *ears) {
		ids := e.endpoints(2)
		a, b, c := e.subscribe(ids[0], "a", interval), e.subscribe(ids[0], "b", interval), e.subscribe(ids[0], "c", interval)
		other := e.subscribe(ids[1], "other", 100*365*24*time.Hour)
		e.passes(interval, "+a 10s")
		e.tell("a", 3)
		time.Sleep(interval / 4)
		b.Cancel()
		a.Cancel()
		e.passes(interval*3/4-1, "-a")
		e.passes(1, "+c 10s")
		e.tell("c", 4)
		c.Cancel()
		other.Cancel()
		e.passes(time.Hour, "-c")
		require.Equal(t, []string{"a 3 0.5", "c 4 0.5"}, e.got)
	})
}

// However many channels list however many endpoints, one connection to each listens.
func TestOneOfManyListens(t *testing.T) {
	const endpoints, channels = 1000, 50
	listen(t, func(e *ears) {
		ids := e.endpoints(endpoints)
		var all [channels][]*reports.Subscription
		for c := range channels {
			for i, id := range ids {
				all[c] = append(all[c], e.subscribe(id, fmt.Sprint(i, " of ", c), interval))
			}
		}
		heard := func(channel int) {
			time.Sleep(interval)
			synctest.Wait()
			require.Len(t, e.open, endpoints)
			for i := range ids {
				require.NotNil(t, e.open[fmt.Sprint(i, " of ", channel)])
			}
		}
		heard(0)
		for c := range all {
			if c == channels-1 {
				heard(c)
			}
			for _, s := range all[c] {
				s.Cancel()
			}
		}
		require.Empty(t, e.open)
	})
}

// The shortest interval is the one.
func TestShortestIntervalListens(t *testing.T) {
	listen(t, func(e *ears) {
		id := e.endpoints(1)[0]
		slow := e.subscribe(id, "slow", interval)
		e.passes(interval, "+slow 10s")
		quick := e.subscribe(id, "quick", interval/10)
		slow2 := e.subscribe(id, "slow2", interval)
		e.passes(interval/10, "-slow", "+quick 1s")
		quick.Cancel()
		e.passes(interval, "-quick", "+slow 10s")
		slow2.Cancel() // first: it might listen at once in slow's place
		slow.Cancel()
		e.passes(interval, "-slow")
	})
}

// Where the connection that listens goes before it is told, the next one begins when it would have.
func TestSubscriptionsThatDoNotLast(t *testing.T) {
	listen(t, func(e *ears) {
		id := e.endpoints(1)[0]
		last := e.subscribe(id, "0", interval)
		for i := range 20 {
			next := e.subscribe(id, fmt.Sprint(i+1), interval)
			time.Sleep(interval / 20)
			last.Cancel()
			last = next
		}
		synctest.Wait()
		require.NotEmpty(t, e.begun)
		require.Less(t, e.begun[0], interval)
		last.Cancel()
		require.Empty(t, e.open)
		e.subscribe(id, "alone", interval).Cancel()
		e.history = nil
		e.passes(time.Hour)
	})
}

// What a connection is told that does not listen any more is passed over.
func TestReportOfTheLast(t *testing.T) {
	listen(t, func(e *ears) {
		id := e.endpoints(1)[0]
		a := e.subscribe(id, "a", interval)
		e.passes(interval, "+a 10s")
		late := e.open["a"]
		b := e.subscribe(id, "b", interval/2)
		late(5, 1)
		a.Cancel()
		late(5, 1)
		e.passes(interval/2, "-a", "+b 5s")
		b.Cancel()
		late(5, 1)
		require.Empty(t, e.got)
	})
}

// Subscriptions begin and end while reports come: at the end nothing listens.
func TestSubscriptionsAtOnce(t *testing.T) {
	e := &ears{T: t, open: map[string]reports.Report{}}
	var mu sync.Mutex
	open := 0
	reports.Register(func(_ balancer.SubConn, _ time.Duration, report reports.Report) func() {
		mu.Lock()
		defer mu.Unlock()
		open++
		quit, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-quit:
					return
				default:
					report(1, 1)
				}
			}
		}()
		return sync.OnceFunc(func() {
			close(quit)
			<-done
			mu.Lock()
			defer mu.Unlock()
			open--
		})
	})
	ids := e.endpoints(3)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 300 {
				s := reports.Subscribe(ids[k%3], &conn{}, time.Duration(1+(i+k)%4)*10*time.Microsecond, func(int64, float64) {})
				if k%7 == 0 {
					time.Sleep(50 * time.Microsecond)
				}
				s.Cancel()
			}
		})
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Zero(t, open)
}
