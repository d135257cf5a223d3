package state

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// turning is a member at its server's limit, with RPCs that wait for it.
type turning struct {
	*ReadySet
	limit  int
	leases []Lease
	waits  []context.Context
}

func newTurning(t *testing.T, limit, waiting int) *turning {
	v := Open("").NewEndpointSet("").NewReadySet(0)
	v.set.SetGuards(Guards{MaxQueued: 10_000})
	m := v.set.Update(nil, []Identity{{Addrs: []string{"a"}}})[0]
	m.NewConnection().SetLimit(uint32(limit))
	v.Set(m, 1, nil)
	v.set.SetQueueSets(v)
	s := &turning{ReadySet: v, limit: limit}
	for range limit {
		s.leases = append(s.leases, acquire(t, v))
	}
	for range waiting {
		s.wait(t)
	}
	t.Cleanup(v.set.Close)
	return s
}

func (s *turning) wait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	_, _, outcome := s.set.AcquireOrQueue(ctx, nil, s.ReadySet)
	require.Equal(t, Queued, outcome)
	s.waits = append(s.waits, ctx)
}

// turn ends some RPCs, and takes up what others are granted.
func (s *turning) turn(t *testing.T, ends int) {
	for range ends {
		s.leases[0].Release()
		s.leases = s.leases[1:]
	}
	for range s.ledger.Snapshot().Granted {
		lease, _, outcome := s.set.AcquireOrQueue(s.waits[0], nil, s.ReadySet)
		require.Equal(t, Chosen, outcome, "room goes by arrival")
		s.leases, s.waits = append(s.leases, lease), s.waits[1:]
	}
}

// Where very many wait and RPCs end all the time, as many are given room beyond the limit
// as end while the others are woken, which is put off meanwhile. Streams that live, or end
// together, leave it as it is.
func TestVeryManyShortRPCsLookAhead(t *testing.T) {
	for name, row := range map[string]struct {
		waiting, ends int // RPCs that end in each window
		after         int // the windows before without
		pause         time.Duration
		ahead         int
	}{
		"short RPCs":              {waiting: 900, ends: 10, ahead: 10},
		"more end than the limit": {waiting: 4900, ends: 100, ahead: 40},
		"few wait":                {waiting: veryMany + 1, ends: 1},
		"all end together":        {waiting: 900, ends: 40, after: turnoverWindows + 4},
		"with pauses":             {waiting: 900, ends: 10, pause: 2 * turnoverWindow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTurning(t, 40, row.waiting)
				for i := range turnoverWindows + 5 {
					if i >= row.after {
						for range row.ends {
							s.turn(t, 1)
						}
					}
					require.LessOrEqual(t, len(s.leases), s.limit+row.ahead)
					time.Sleep(turnoverWindow + Tick + row.pause)
				}
				s.turn(t, 1)
				require.NoError(t, s.ledger.Check())
				require.Len(t, s.leases, s.limit+row.ahead)
				require.Equal(t, row.ahead > 0, s.set.WakePause() > 0)
				require.LessOrEqual(t, s.set.WakePause(), turnoverWindow)

				time.Sleep(3 * turnoverWindow) // in which no RPC ends: then all is as before
				for range row.ahead + 1 {
					s.turn(t, 1)
				}
				require.Len(t, s.leases, s.limit)
				require.Zero(t, s.set.WakePause())
				require.NoError(t, s.ledger.Check())
			})
		})
	}
}
