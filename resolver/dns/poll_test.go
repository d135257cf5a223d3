package dns

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

func every(interval time.Duration) params {
	p := defaults()
	p.interval = interval
	return p
}

// Lookups follow one another after 80 to 100 % of the interval, spread over it,
// and an unchanged answer is sent once.
func TestPollsAtTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedLookup{answers: []answer{found("10.0.0.1:80")}, takes: time.Second}
		c := &recordingConn{}
		r := startPoller(every(10*time.Second), c, s.lookup)
		time.Sleep(time.Hour)
		r.Close()
		require.Equal(t, []string{"10.0.0.1:80"}, c.takeEvents())
		low, high := s.pauses()[0], s.pauses()[0]
		for _, d := range s.pauses() {
			low, high = min(low, d), max(high, d)
		}
		require.Greater(t, len(s.pauses()), 300)
		require.GreaterOrEqual(t, low, 8*time.Second)
		require.Less(t, low, 8500*time.Millisecond)
		require.LessOrEqual(t, high, 10*time.Second)
		require.Greater(t, high, 9500*time.Millisecond)
	})
}

func TestChangesAreSentWithinAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedLookup{answers: []answer{found("10.0.0.1:80"), found("10.0.0.1:80", "10.0.0.2:80"), found("10.0.0.2:80")}}
		c := &recordingConn{}
		r := startPoller(every(10*time.Second), c, s.lookup)
		synctest.Wait()
		require.Equal(t, []string{"10.0.0.1:80"}, c.takeEvents())
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"10.0.0.1:80 10.0.0.2:80"}, c.takeEvents())
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"10.0.0.2:80"}, c.takeEvents())
		r.Close()
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

func TestResolveNowIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedLookup{answers: []answer{found("10.0.0.1:80")}, takes: 500 * time.Millisecond}
		r := startPoller(every(time.Hour), &recordingConn{}, s.lookup)
		for range 1000 {
			time.Sleep(100 * time.Millisecond)
			r.ResolveNow(resolver.ResolveNowOptions{})
		}
		r.Close()
		for _, d := range s.pauses() {
			require.GreaterOrEqual(t, d, 2*time.Second)
			require.LessOrEqual(t, d, 2100*time.Millisecond)
		}
		require.Greater(t, len(s.pauses()), 30)
	})
}

// A minInterval of more than the interval does not slow lookups down.
func TestTheIntervalIsTheLongestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := every(time.Second)
		p.minInterval = time.Hour
		s := &scriptedLookup{answers: []answer{found("10.0.0.1:80")}}
		r := startPoller(p, &recordingConn{}, s.lookup)
		for range 1000 {
			time.Sleep(100 * time.Millisecond)
			r.ResolveNow(resolver.ResolveNowOptions{})
		}
		r.Close()
		for _, d := range s.pauses() {
			require.GreaterOrEqual(t, d, 800*time.Millisecond)
			require.LessOrEqual(t, d, time.Second)
		}
	})
}

// A lookup that takes longer than the interval is waited for.
func TestLookupsDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedLookup{answers: []answer{found("10.0.0.1:80")}, takes: 5 * time.Second}
		r := startPoller(every(100*time.Millisecond), &recordingConn{}, s.lookup)
		for range 1000 {
			time.Sleep(100 * time.Millisecond)
			r.ResolveNow(resolver.ResolveNowOptions{})
		}
		r.Close()
		require.InDelta(t, 20, len(s.started), 1)
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
