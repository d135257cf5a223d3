package dns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
)

// Before there is any list, lookups come after 1 s, 2 s and so on up to the
// interval; with one, at the interval, and failures leave it alone.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := failed("no answer")
		s := &scriptedLookup{answers: []answer{no, no, no, no, no, no, found("10.0.0.1:80"), no, no, found("10.0.0.1:80"), no}}
		c := &recordingConn{}
		r := startPoller(every(10*time.Second), c, s.lookup)
		time.Sleep(time.Hour)
		r.Close()
		for i, longest := range []time.Duration{1, 2, 4, 8, 10, 10, 10, 10, 10, 10, 10} {
			longest *= time.Second
			require.LessOrEqual(t, s.pauses()[i], longest, i)
			require.GreaterOrEqual(t, s.pauses()[i], longest*8/10, i)
		}
		events := c.takeEvents()
		for i, e := range events {
			if i != 6 {
				require.Equal(t, "error: no answer", e, i)
			}
		}
		require.Equal(t, "10.0.0.1:80", events[6])
	})
}

// With a short interval nothing comes faster than the interval.
func TestRetriesAreNotFasterThanTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedLookup{answers: []answer{failed("no answer")}}
		r := startPoller(every(500*time.Millisecond), &recordingConn{}, s.lookup)
		time.Sleep(time.Minute)
		r.Close()
		for _, d := range s.pauses() {
			require.GreaterOrEqual(t, d, 400*time.Millisecond)
			require.LessOrEqual(t, d, 500*time.Millisecond)
		}
	})
}

// A list that came with an error is used, and both are told, the error last.
func TestAListWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		partial := found("10.0.0.1:80")
		partial.complete, partial.err = false, errors.New("half")
		s := &scriptedLookup{answers: []answer{partial}}
		c := &recordingConn{}
		r := startPoller(every(10*time.Second), c, s.lookup)
		time.Sleep(11 * time.Second)
		r.Close()
		require.Equal(t, []string{"10.0.0.1:80", "error: half", "error: half"}, c.takeEvents())
	})
}

// The empty list is sent once, the reason each time; before any other list it
// is only an error.
func TestTheEmptyList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := failed("no such host")
		none.complete = true
		s := &scriptedLookup{answers: []answer{none, found("10.0.0.1:80"), none, none, found("10.0.0.1:80")}}
		c := &recordingConn{refuse: func(s resolver.State) error {
			if len(s.Endpoints) == 0 {
				return balancer.ErrBadResolverState
			}
			return nil
		}}
		r := startPoller(every(time.Second), c, s.lookup)
		time.Sleep(10 * time.Second)
		r.Close()
		require.Equal(t, []string{
			"error: no such host", "10.0.0.1:80", "", "error: no such host", "error: no such host", "10.0.0.1:80",
		}, c.takeEvents())
	})
}

// A list that the policy refused is sent again with each lookup, until it takes
// it.
func TestARefusedListIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refusals int
		c := &recordingConn{refuse: func(resolver.State) error {
			if refusals++; refusals <= 2 {
				return balancer.ErrBadResolverState
			}
			return nil
		}}
		s := &scriptedLookup{answers: []answer{found("10.0.0.1:80")}}
		r := startPoller(every(10*time.Second), c, s.lookup)
		time.Sleep(time.Minute)
		r.Close()
		require.Equal(t, []string{"10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:80"}, c.takeEvents())
		require.LessOrEqual(t, s.pauses()[0], time.Second)
		require.LessOrEqual(t, s.pauses()[1], 2*time.Second)
		require.Greater(t, s.pauses()[2], 2*time.Second)
	})
}

// Close ends a pause, a lookup and an update; nothing is sent after it, and the
// bubble would not end with a goroutine left.
func TestCloseInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &recordingConn{}
		r := startPoller(every(time.Hour), c, (&scriptedLookup{answers: []answer{found("10.0.0.1:80")}}).lookup)
		time.Sleep(time.Second)
		c.takeEvents()
		began := time.Now()
		r.Close()
		require.Zero(t, time.Since(began))
		r.ResolveNow(resolver.ResolveNowOptions{})
		r.ResolveNow(resolver.ResolveNowOptions{})
		r.Close()
		time.Sleep(24 * time.Hour)
		require.Empty(t, c.takeEvents())
	})
}

func TestCloseInALookup(t *testing.T) {
	for name, a := range map[string]answer{"found": found("10.0.0.1:80"), "failed": failed("cancelled")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &recordingConn{}
				r := startPoller(every(time.Hour), c, func(ctx context.Context) answer {
					<-ctx.Done()
					return a
				})
				synctest.Wait()
				began := time.Now()
				r.Close()
				require.Zero(t, time.Since(began))
				time.Sleep(24 * time.Hour)
				require.Empty(t, c.takeEvents())
			})
		})
	}
}

func TestCloseInAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &recordingConn{hold: make(chan struct{})}
		r := startPoller(every(time.Hour), c, (&scriptedLookup{answers: []answer{found("10.0.0.1:80")}}).lookup)
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			r.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("Close returned during UpdateState")
		default:
		}
		close(c.hold)
		<-closed
		require.Len(t, c.takeEvents(), 1)
		time.Sleep(24 * time.Hour)
		require.Empty(t, c.takeEvents())
	})
}
