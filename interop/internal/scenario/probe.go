package scenario

import (
	"context"
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// waitInUse waits until the policy uses the hosts that it can, all of them and no other. Rounds of probes show it.
func (c *Client) waitInUse(ctx context.Context) error {
	want := c.loads()
	if len(want) == 0 {
		return nil
	}
	var why error
	settled := func() bool {
		why = c.probe(ctx, want)
		return why == nil
	}
	if err := leastconntest.WaitFor(ctx, "the policy to use its hosts", settled); err != nil {
		return fmt.Errorf("%w; of the last probes, %w", err, why)
	}
	return nil
}

// extraProbes is how many more probes than it takes each host gets if one must not get any. A policy that picks at random could
// spare that one by chance for a while.
const extraProbes = 16

// probe opens sessions until every host has more than the fullest had before, and ends them: a policy that levels its
// load comes to each host that it uses, however full that is, and one that takes turns does, too. It is nil if every
// host in want got some and no other did.
func (c *Client) probe(ctx context.Context, want []Load) error {
	missing := c.probesNeeded(want)
	limit := 4*len(want)*slices.MaxFunc(missing, byFewest).Sessions + 4*extraProbes
	var probes []*leastconntest.Stream
	defer func() { leastconntest.CancelAll(probes) }()
	for slices.ContainsFunc(missing, func(m Load) bool { return m.Sessions > 0 }) {
		if len(probes) == limit {
			return fmt.Errorf("%d did not give each host what it lacks: %v", limit, missing)
		}
		s, err := c.channel.Open(ctx)
		if err != nil {
			return fmt.Errorf("number %d failed: %w", len(probes)+1, err)
		}
		probes = append(probes, s)
		at := indexOf(missing, s.Node())
		if at < 0 {
			return fmt.Errorf("number %d went to %s, which is not to be used", len(probes), s.Node())
		}
		missing[at].Sessions--
	}
	return nil
}

// probesNeeded is how many probes each host is to get.
func (c *Client) probesNeeded(want []Load) []Load {
	held := leastconntest.Counts(c.run.streams())
	fullest, extra := 0, 1
	for _, h := range c.listed {
		fullest = max(fullest, held[h.Name()])
		if c.run.down[h.Name()] {
			extra = extraProbes
		}
	}
	lacks := slices.Clone(want)
	for i := range lacks {
		lacks[i].Sessions = fullest - lacks[i].Sessions + extra
	}
	return lacks
}
