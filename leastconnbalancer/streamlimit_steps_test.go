package leastconnbalancer_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
)

func init() {
	steps["limit"] = (*player).setStreamLimits
	during["limit"] = true
	steps["inside"] = (*player).letWaitInside
	steps["begun"] = (*player).begun
	steps["queued"] = func(p *player, args string) {
		n, _ := counted(args)
		p.waits(n)
	}
	steps["shows"] = func(p *player, text string) {
		p.env.wait("the page shows "+text, func() bool { return strings.Contains(p.page(), text) })
	}
}

func (p *player) setStreamLimits(args string) {
	_, limits := p.script.where(args)
	for name, limit := range limits {
		p.script.node(name).SetStreamLimit(uint32(limit))
	}
}

// letWaitInside opens streams that have an endpoint each and wait in its connection.
func (p *player) letWaitInside(args string) {
	n, _ := counted(args)
	for range n {
		before := p.snapshot()
		done := make(chan waited, 1)
		go func() {
			st, err := p.Open(p.env.ctx)
			done <- waited{st, err}
		}()
		p.env.wait("the stream is in flight or waits", func() bool {
			now := p.snapshot()
			return now.InFlight+now.Waiting > before.InFlight+before.Waiting
		})
		require.Equal(p.env, before.Waiting, p.snapshot().Waiting, "%s: RPCs that wait for room", p.script.line)
		p.inside = append(p.inside, done)
		p.othersWait()
	}
}

// begun takes any of those that waited in a connection: gRPC lets them run in no order.
func (p *player) begun(name string) {
	i := -1
	p.env.wait(p.script.line, func() bool {
		i = slices.IndexFunc(p.inside, func(done <-chan waited) bool { return len(done) == 1 })
		return i >= 0
	})
	w := <-p.inside[i]
	require.NoError(p.env, w.err, p.script.line)
	require.Equal(p.env, name, w.stream.Node(), p.script.line)
	p.held = append(p.held, heldStream{w.stream, p.key})
	p.inside = slices.Delete(p.inside, i, i+1)
}

// page is what the page shows of the channel's ledger, as text.
func (c *channel) page() string {
	answer := httptest.NewRecorder()
	debugpage.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/?format=text&key="+url.QueryEscape(c.key), nil))
	return answer.Body.String()
}
