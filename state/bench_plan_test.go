package state

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkPlan looks at 10,000 RPCs of sessions on 1,000 endpoints: where loads are
// level, where some are asked to make them so, and where some cannot stay. It is the time under the mutex.
func BenchmarkPlan(b *testing.B) {
	const endpoints, sessions = 1000, 10_000
	for _, bm := range []struct {
		name    string
		prepare func(p *plan, ms []*Member)
	}{
		{"level", func(*plan, []*Member) {}},
		{"uneven", func(p *plan, _ []*Member) { p.level.active, p.level.credit = true, 1 }},
		{"leave", func(_ *plan, ms []*Member) {
			for _, m := range ms[:100] {
				m.readySet.Set(m, 0, nil)
			}
		}},
	} {
		b.Run(fmt.Sprintf("%s/endpoints=%d/sessions=%d", bm.name, endpoints, sessions), func(b *testing.B) {
			l := Open("")
			r := l.NewEndpointSet("bench")
			r.SetRebalance(Rebalance{PerSecond: 10, DrainWithin: time.Hour})
			v := r.NewReadySet(0)
			ids := make([]Identity, endpoints)
			for i := range ids {
				ids[i].Addrs = []string{fmt.Sprint(i)}
			}
			ms := r.Update(nil, ids)
			for _, m := range ms {
				v.Set(m, 1, nil)
			}
			var leases []Lease
			for range sessions {
				ctx, _ := new(Session).Next(context.Background())
				lease, _, _ := r.AcquireOrQueue(ctx, nil, v)
				leases = append(leases, lease)
			}
			if bm.name == "uneven" {
				v.Set(r.Update(nil, []Identity{{Addrs: []string{"joins"}}})[0], 1, nil)
			}
			bm.prepare(r.plan, ms)
			l.mu.Lock()
			for l.clock.inTick {
				l.mu.Unlock()
				l.mu.Lock()
			}
			l.clock.inTick = true // the ticks are the benchmark's
			l.mu.Unlock()
			b.ResetTimer()
			for range b.N {
				l.mu.Lock()
				r.plan.level.credit, r.plan.unanswered = 1, 0
				l.planAt = 0
				l.runPlans()
				l.mu.Unlock()
			}
			b.StopTimer()
			for _, le := range leases {
				le.Release()
			}
			r.Close()
		})
	}
}
