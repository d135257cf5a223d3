package dns

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
)

func every(interval time.Duration) params {
	p := defaults()
	p.interval = interval
	return p
}

// bounds are what a pause lies between.
type bounds struct{ low, high time.Duration }

// jittered are the bounds of a pause that chance takes a fifth off.
func jittered(high time.Duration) bounds { return bounds{high * 8 / 10, high} }

// What lookups find reaches the channel, and when the next one starts.
func TestPoller(t *testing.T) {
	one, two := found("10.0.0.1:80"), found("10.0.0.1:80", "10.0.0.2:80")
	no, half := failed("no answer"), found("10.0.0.1:80")
	half.complete, half.err = false, no.err
	none := no
	none.complete = true
	const sec = time.Second
	refuseEmpty := func(s resolver.State, _ int) bool { return len(s.Endpoints) == 0 }
	for name, tc := range map[string]struct {
		params  params
		answers []answer
		takes   time.Duration                  // of a lookup
		refuse  func(resolver.State, int) bool // by the number of the update
		hurried bool                           // ResolveNow comes every 100 ms
		events  []string                       // the first ones
		pauses  []bounds                       // the last ones hold on
	}{
		"an unchanged list is sent once": {
			params: every(10 * sec), answers: []answer{one}, takes: sec,
			events: []string{"10.0.0.1:80"}, pauses: []bounds{jittered(10 * sec)},
		},
		"changes are sent": {
			params: every(10 * sec), answers: []answer{one, two, found("10.0.0.2:80")},
			events: []string{"10.0.0.1:80", "10.0.0.1:80 10.0.0.2:80", "10.0.0.2:80"}, pauses: []bounds{jittered(10 * sec)},
		},
		"before any list lookups come faster, and failures later leave the interval alone": {
			params: every(10 * sec), answers: []answer{no, no, no, no, no, no, one, no, no, one},
			events: []string{
				"error: no answer", "error: no answer", "error: no answer", "error: no answer", "error: no answer", "error: no answer",
				"10.0.0.1:80", "error: no answer", "error: no answer",
			},
			pauses: []bounds{jittered(sec), jittered(2 * sec), jittered(4 * sec), jittered(8 * sec), jittered(10 * sec)},
		},
		"retries are not faster than a short interval": {
			params: every(sec / 2), answers: []answer{no, no, one},
			events: []string{"error: no answer", "error: no answer", "10.0.0.1:80"}, pauses: []bounds{jittered(sec / 2)},
		},
		"a list that came with an error is used, and the error comes last": {
			params: every(10 * sec), answers: []answer{half, half, one},
			events: []string{"10.0.0.1:80", "error: no answer", "error: no answer"}, pauses: []bounds{jittered(10 * sec)},
		},
		"the empty list is sent once and its reason each time, but before any other list only the reason": {
			params: every(sec), answers: []answer{none, one, none, none, one}, refuse: refuseEmpty,
			events: []string{"error: no answer", "10.0.0.1:80", "", "error: no answer", "error: no answer", "10.0.0.1:80"},
			pauses: []bounds{jittered(sec)},
		},
		"a list that the policy refuses is sent again until it takes it": {
			params: every(10 * sec), answers: []answer{one}, refuse: func(_ resolver.State, update int) bool { return update <= 2 },
			events: []string{"10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:80"},
			pauses: []bounds{jittered(sec), jittered(2 * sec), jittered(10 * sec)},
		},
		"ResolveNow is limited": {
			params: every(time.Hour), answers: []answer{one}, takes: sec / 2, hurried: true,
			events: []string{"10.0.0.1:80"}, pauses: []bounds{{2 * sec, 2100 * time.Millisecond}},
		},
		"a minInterval of more than the interval does not slow lookups down": {
			params: params{interval: sec, minInterval: time.Hour, timeout: sec}, answers: []answer{one}, hurried: true,
			events: []string{"10.0.0.1:80"}, pauses: []bounds{jittered(sec)},
		},
		"a lookup that takes longer than the interval is waited for": {
			params: every(sec / 10), answers: []answer{one}, takes: 5 * sec, hurried: true,
			events: []string{"10.0.0.1:80"}, pauses: []bounds{jittered(sec / 10)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				updates := 0
				c := &recordingConn{refuse: func(s resolver.State) error {
					if updates++; tc.refuse != nil && tc.refuse(s, updates) {
						return balancer.ErrBadResolverState
					}
					return nil
				}}
				s := &scriptedLookup{answers: slices.Clone(tc.answers), takes: tc.takes}
				r := startPoller(tc.params, c, s.lookup)
				for range 6000 {
					time.Sleep(100 * time.Millisecond)
					if tc.hurried {
						r.ResolveNow(resolver.ResolveNowOptions{})
					}
				}
				r.Close()
				require.Equal(t, tc.events, c.takeEvents())
				pauses := s.pauses()
				require.Greater(t, len(pauses), 50)
				for i, d := range pauses {
					want := tc.pauses[min(i, len(tc.pauses)-1)]
					require.GreaterOrEqual(t, d, want.low, i)
					require.LessOrEqual(t, d, want.high, i)
				}
			})
		})
	}
}

// Pauses are spread over their bounds, so that clients do not stay in step.
func TestPausesAreSpread(t *testing.T) {
	p := &poller{params: every(10 * time.Second)}
	require.Equal(t, 10*time.Second, p.delay(0))
	require.Equal(t, 9*time.Second, p.delay(0.5))
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedLookup{answers: []answer{found("10.0.0.1:80")}}
		r := startPoller(every(10*time.Second), &recordingConn{}, s.lookup)
		time.Sleep(time.Hour)
		r.Close()
		require.Less(t, slices.Min(s.pauses()), 8500*time.Millisecond)
		require.Greater(t, slices.Max(s.pauses()), 9500*time.Millisecond)
	})
}

func TestResolveNowLooksSoonerButNotAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedLookup{answers: []answer{found("10.0.0.1:80")}, takes: time.Second}
		r := startPoller(every(time.Hour), &recordingConn{}, s.lookup)
		defer r.Close()
		time.Sleep(time.Minute)
		require.Equal(t, 1, s.count())
		r.ResolveNow(resolver.ResolveNowOptions{})
		require.Equal(t, 2, s.count(), "the last lookup was long ago")

		// One that comes during a lookup gets one of its own, after minInterval.
		r.ResolveNow(resolver.ResolveNowOptions{})
		time.Sleep(3*time.Second - 1)
		require.Equal(t, 2, s.count())
		time.Sleep(2 * time.Nanosecond)
		require.Equal(t, 3, s.count())

		// What was asked for is asked for once.
		time.Sleep(30 * time.Minute)
		require.Equal(t, 3, s.count())
	})
}

func TestALookupEndsAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := every(time.Hour)
		p.timeout = 3 * time.Second
		var took []time.Duration
		r := startPoller(p, &recordingConn{}, func(ctx context.Context) answer {
			began := time.Now()
			<-ctx.Done()
			took = append(took, time.Since(began))
			return failed("late")
		})
		time.Sleep(time.Minute)
		r.Close()
		require.Equal(t, 3*time.Second, took[0])
	})
}

// Close ends a pause and a lookup at once and waits for an update. Nothing is
// sent after it. The bubble would not end with a goroutine left.
func TestClose(t *testing.T) {
	until := func(a answer) lookup {
		return func(ctx context.Context) answer {
			<-ctx.Done()
			return a
		}
	}
	for name, tc := range map[string]struct {
		lookup lookup
		hold   bool
	}{
		"in a pause":                  {lookup: (&scriptedLookup{answers: []answer{found("10.0.0.1:80")}}).lookup},
		"in a lookup that then finds": {lookup: until(found("10.0.0.1:80"))},
		"in a lookup that then fails": {lookup: until(failed("cancelled"))},
		"in an update":                {lookup: (&scriptedLookup{answers: []answer{found("10.0.0.1:80")}}).lookup, hold: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &recordingConn{}
				if tc.hold {
					c.hold = make(chan struct{})
				}
				r := startPoller(every(time.Hour), c, tc.lookup)
				synctest.Wait()
				c.takeEvents()
				began, closed := time.Now(), make(chan struct{})
				go func() {
					r.Close()
					close(closed)
				}()
				synctest.Wait()
				if tc.hold {
					select {
					case <-closed:
						t.Fatal("Close returned during UpdateState")
					default:
					}
					close(c.hold)
				}
				<-closed
				require.Zero(t, time.Since(began))
				if tc.hold {
					require.Len(t, c.takeEvents(), 1)
				}
				r.ResolveNow(resolver.ResolveNowOptions{})
				r.ResolveNow(resolver.ResolveNowOptions{})
				r.Close()
				time.Sleep(24 * time.Hour)
				require.Empty(t, c.takeEvents())
			})
		})
	}
}
