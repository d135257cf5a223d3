package state

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// eachPause plays a test once for each pause of the first work in steps that it has counted by the
// function it is given, with something done at that pause.
func eachPause(t *testing.T, play func(t *testing.T, count func(l *Ledger, do func()) (pauses func() int))) {
	t.Helper()
	most := 0
	for at := 0; at <= most; at++ { // at 0 nothing is done
		synctest.Test(t, func(t *testing.T) {
			play(t, func(l *Ledger, do func()) func() int {
				var n atomic.Int64
				l.mu.Lock()
				defer l.mu.Unlock()
				l.stepSize, l.atPause = -1, func() {
					if n.Add(1) == int64(at) {
						do()
					}
				}
				return func() int {
					l.mu.Lock()
					defer l.mu.Unlock()
					if l.atPause = nil; at == 0 {
						most = int(n.Load())
					}
					return int(n.Load())
				}
			})
		})
	}
	require.Positive(t, most)
}

// plannedSet is an endpoint set with some members, all ready, whose sessions' RPCs may move.
type plannedSet struct {
	*Ledger
	set *EndpointSet
	v   *ReadySet
	ms  []*Member
}

func newPlanned(members int) *plannedSet {
	l := newLedger("")
	set := l.NewEndpointSet("")
	p := &plannedSet{l, set, set.NewReadySet(0), set.Update(nil, identities(members))}
	set.SetRebalance(Rebalance{PerSecond: 1000})
	for _, m := range p.ms {
		p.v.Set(m, 1, 0)
	}
	return p
}

func (p *plannedSet) open(s *Session) (context.Context, Lease) {
	ctx, _ := s.Next(context.Background())
	return ctx, p.pick(ctx)
}

func (p *plannedSet) pick(ctx context.Context) Lease {
	lease, _, _ := p.set.AcquireOrQueue(ctx, nil, p.v)
	return lease
}

// A plan that is over after a pause, at whichever, looks at no member that has left since.
func TestPlanIsOverAfterAPause(t *testing.T) {
	for name, end := range map[string]func(p *plannedSet, lease Lease){
		"its endpoint set has closed": func(p *plannedSet, _ Lease) { p.set.Close() },
		"its RPCs and endpoints left": func(p *plannedSet, lease Lease) { lease.end(endReleased); p.set.Update(p.ms, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			eachPause(t, func(t *testing.T, count func(*Ledger, func()) func() int) {
				p := newPlanned(1)
				_, lease := p.open(new(Session))
				for _, m := range p.set.Update(nil, identities(3)[1:]) {
					p.v.Set(m, 1, 0)
					p.ms = append(p.ms, m)
				}
				p.mu.Lock()
				p.set.plan.level.settle, p.set.plan.level.drawAt = 0, 0
				p.mu.Unlock()
				pauses := count(p.Ledger, func() { end(p, lease) })
				time.Sleep(2 * planPeriod)
				synctest.Wait()
				pauses()
				lease.end(endReleased)
				require.NoError(t, p.Check())
				p.set.Close()
				require.NoError(t, p.Check())
			})
		})
	}
}

// While a plan looks for where an RPC is to go, that may end, and its next attempt be elsewhere, or
// another of its session's RPCs be asked in another ledger: it is not asked then.
func TestRPCIsAskedNoMoreAfterAPause(t *testing.T) {
	for name, meanwhile := range map[string]func(p, other *plannedSet, ctx context.Context, leases []Lease){
		"next attempt in another ledger": func(_, o *plannedSet, ctx context.Context, ls []Lease) { ls[0].end(endReleased); ls[0] = o.pick(ctx) },
		"another one is asked": func(_, o *plannedSet, _ context.Context, ls []Lease) {
			o.v.Set(ls[2].entry.endpoint.members[0], 0, 0)
			time.Sleep(3 * planPeriod)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachPause(t, func(t *testing.T, count func(*Ledger, func()) func() int) {
				p, other := newPlanned(3), newPlanned(2)
				var s Session
				ctx, lease := p.open(&s)
				_, stays := p.open(new(Session)) // so does the plan
				_, second := other.open(&s)
				leases := []Lease{lease, stays, second}
				from := lease.entry.endpoint.members[0]
				pauses := count(p.Ledger, func() { meanwhile(p, other, ctx, leases) })
				p.v.Set(from, 0, 0)
				time.Sleep(2 * planPeriod)
				pauses()
				time.Sleep(10 * planPeriod)
				for _, ledger := range []*Ledger{p.Ledger, other.Ledger} {
					require.NoError(t, ledger.Check())
				}
				for _, lease := range leases {
					lease.end(endReleased)
				}
				time.Sleep(2 * moveWithin)
				for _, is := range []*plannedSet{p, other} {
					require.NoError(t, is.Check())
					require.Zero(t, is.Snapshot().InFlight, "a place that is kept for ever")
					is.set.Close()
				}
			})
		})
	}
}

// The last RPCs of an endpoint that nobody lists end while totals are made, at whichever pause:
// they are somebody's, or not there.
func TestEndpointGoesWhileTotalsAreMade(t *testing.T) {
	for range 4 { // endpoints come in any order
		eachPause(t, func(t *testing.T, count func(*Ledger, func()) func() int) {
			p := newPlanned(2)
			defer p.set.Close()
			leases := []Lease{p.pick(context.Background()), p.pick(context.Background())}
			p.set.Update(p.ms[:1], nil)
			pauses := count(p.Ledger, func() {
				for _, lease := range leases {
					lease.end(endReleased)
				}
			})
			got := p.Totals(nil)
			pauses()
			require.Len(t, SeriesOf("", []*LedgerTotals{got}), 1)
			for _, n := range got.endpoints {
				require.NotZero(t, n.labels)
			}
			for _, lease := range leases {
				lease.end(endReleased)
			}
		})
	}
}
