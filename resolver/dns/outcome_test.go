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
		s := &script{answers: []answer{no, no, no, no, no, no, list("10.0.0.1:80"), no, no, list("10.0.0.1:80"), no}}
		c := &conn{}
		r := start(every(10*time.Second), c, s.look)
		time.Sleep(time.Hour)
		r.Close()
		for i, longest := range []time.Duration{1, 2, 4, 8, 10, 10, 10, 10, 10, 10, 10} {
			longest *= time.Second
			require.LessOrEqual(t, s.pauses()[i], longest, i)
			require.GreaterOrEqual(t, s.pauses()[i], longest*8/10, i)
		}
		events := c.take()
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
		s := &script{answers: []answer{failed("no answer")}}
		r := start(every(500*time.Millisecond), &conn{}, s.look)
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
		partial := list("10.0.0.1:80")
		partial.known, partial.err = false, errors.New("half")
		s := &script{answers: []answer{partial}}
		c := &conn{}
		r := start(every(10*time.Second), c, s.look)
		time.Sleep(11 * time.Second)
		r.Close()
		require.Equal(t, []string{"10.0.0.1:80", "error: half", "error: half"}, c.take())
	})
}

// The empty list is sent once, the reason each time; before any other list it
// is only an error.
func TestTheEmptyList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := failed("no such host")
		none.known = true
		s := &script{answers: []answer{none, list("10.0.0.1:80"), none, none, list("10.0.0.1:80")}}
		c := &conn{refuse: func(s resolver.State) error {
			if len(s.Endpoints) == 0 {
				return balancer.ErrBadResolverState
			}
			return nil
		}}
		r := start(every(time.Second), c, s.look)
		time.Sleep(10 * time.Second)
		r.Close()
		require.Equal(t, []string{
			"error: no such host", "10.0.0.1:80", "", "error: no such host", "error: no such host", "10.0.0.1:80",
		}, c.take())
	})
}

// A list that the policy refused is sent again with each lookup, until it takes
// it.
func TestARefusedListIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refusals int
		c := &conn{refuse: func(resolver.State) error {
			if refusals++; refusals <= 2 {
				return balancer.ErrBadResolverState
			}
			return nil
		}}
		s := &script{answers: []answer{list("10.0.0.1:80")}}
		r := start(every(10*time.Second), c, s.look)
		time.Sleep(time.Minute)
		r.Close()
		require.Equal(t, []string{"10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:80"}, c.take())
		require.LessOrEqual(t, s.pauses()[0], time.Second)
		require.LessOrEqual(t, s.pauses()[1], 2*time.Second)
		require.Greater(t, s.pauses()[2], 2*time.Second)
	})
}

// Close ends a pause, a lookup and an update; nothing is sent after it, and the
// bubble would not end with a goroutine left.
func TestCloseInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &conn{}
		r := start(every(time.Hour), c, (&script{answers: []answer{list("10.0.0.1:80")}}).look)
		time.Sleep(time.Second)
		c.take()
		began := time.Now()
		r.Close()
		require.Zero(t, time.Since(began))
		r.ResolveNow(resolver.ResolveNowOptions{})
		r.ResolveNow(resolver.ResolveNowOptions{})
		r.Close()
		time.Sleep(24 * time.Hour)
		require.Empty(t, c.take())
	})
}

func TestCloseInALookup(t *testing.T) {
	for name, a := range map[string]answer{"found": list("10.0.0.1:80"), "failed": failed("cancelled")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &conn{}
				r := start(every(time.Hour), c, func(ctx context.Context) answer {
					<-ctx.Done()
					return a
				})
				synctest.Wait()
				began := time.Now()
				r.Close()
				require.Zero(t, time.Since(began))
				time.Sleep(24 * time.Hour)
				require.Empty(t, c.take())
			})
		})
	}
}

func TestCloseInAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &conn{hold: make(chan struct{})}
		r := start(every(time.Hour), c, (&script{answers: []answer{list("10.0.0.1:80")}}).look)
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
		require.Len(t, c.take(), 1)
		time.Sleep(24 * time.Hour)
		require.Empty(t, c.take())
	})
}
