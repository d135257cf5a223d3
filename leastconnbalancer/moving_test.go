package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eager is a configuration by which streams of any age move, 50 in a second.
const eager = `{"failurePenalty":"0s","rebalance":{"perSecond":50,"minAge":"0s","drainWithin":"1s"}}`

// Streams move when the loads of the endpoints are not level any more, as many as
// needed, and none back.
func TestStreamsMoveForLevelLoads(t *testing.T) {
	const join = `list a b c; sessions 300 -> a100 b100 c100; list a b c d; level a75 b75 c75 d75; told 75`
	play(t,
		row{"a fourth node joins", eager, join + `; calm; told 75`},
		row{"at 1,000 in a second", `{"rebalance":{"perSecond":1000,"minAge":"0s"}}`, join + `; calm; told 75`},
		row{"the next stream first", eager, `list a b c; careful 300 -> a100 b100 c100; list a b c d; level a75 b75 c75 d75; told 75; calm; told 75`},
		row{"five channels of one target", eager, `
			list a b c; v: list a b c; w: list a b c; y: list a b c; z: list a b c
			sessions 60; v: sessions 60; w: sessions 60; y: sessions 60; z: sessions 60 -> a100 b100 c100
			list a b c d; v: list a b c d; w: list a b c d; y: list a b c d; z: list a b c d
			level a75 b75 c75 d75; told 75; calm; told 75`},
		row{"off", `{"rebalance":{"perSecond":0,"minAge":"0s"}}`, `
			list a b c; sessions 300 -> a100 b100 c100; list a b c d; calm; level a100 b100 c100; told 0`},
		row{"too young", `{"rebalance":{"perSecond":50,"minAge":"3600s"}}`, `
			list a b c; sessions 30 -> a10 b10 c10; list a b c d; calm; level a10 b10 c10; told 0`},
		row{"weights change", eager, `
			list a b c; sessions 300 -> a100 b100 c100; list a:3 b c; level a180 b60 c60; told 80; calm; told 80`},
		row{"a cap on the new node", eager, `
			list a b c; sessions 300 -> a100 b100 c100; list a b c d<30; level a90 b90 c90 d30; told 30; calm; told 30`},
	)
}

// Streams that cannot stay where they are move within drainWithin, whatever their age.
func TestStreamsMoveThatCannotStay(t *testing.T) {
	const drain = `{"failurePenalty":"0s","rebalance":{"drainWithin":"1s"}}`
	play(t,
		row{"weight 0", drain, `list a b c; sessions 600 -> a200 b200 c200; list a b c:0; level a300 b300; told 200`},
		row{"not listed", drain, `list a b c; sessions 300 -> a100 b100 c100; list a b; level a150 b150; told 100`},
		row{"a lower priority level", drain, `
			list a:0 b:0 c/1; sessions 100 -> c100; list a b c/1; level a50 b50; told 100`},
		row{"GOAWAY, and the node stays", `{"rebalance":{"drainWithin":"6s"}}`, `
			list a b c; sessions 300 -> a100 b100 c100; ages a; level a100 b100 c100; told 100
			ages b; level a100 b100 c100; told 200; ages c; level a100 b100 c100; told 300`},
		row{"all endpoints", drain, `list a b; sessions 20 -> a10 b10; list a:0 b:0; calm; level a10 b10; told 0`},
		row{"one stream", drain, `list a b; sessions 1; list a:0 b; level b1`},
		row{"not healthy for a moment", drain, `list a b; sessions 20 -> a10 b10; unwell a; well a; calm; level a10 b10; told 0`},
		row{"not healthy", drain, `list a b; sessions 20 -> a10 b10; unwell a; level b20; told 10`},
		row{"graceful stops", `{"failurePenalty":"0s","rebalance":{"perSecond":1000,"minAge":"0s","drainWithin":"1s"}}`, `
			list a b c; sessions 300 -> a100 b100 c100
			graceful a; level b150 c150; told 100; start a; level a100 b100 c100; told 200
			graceful b; level a150 c150; told 300; start b; level a100 b100 c100; told 400
			graceful c; level a150 b150; told 500; start c; level a100 b100 c100; told 600`},
	)
}

// Nobody is asked to move for what passes, and few where moving does not work.
func TestStreamsThatDoNotMove(t *testing.T) {
	play(t,
		row{"a node flaps", eager, `list a b c; sessions 300 -> a100 b100 c100; flaps 10 d; calm; level a100 b100 c100; told 0`},
		row{"short calls beside them", eager, `list a b c; sessions 30 -> a10 b10 c10; busy 40; calm; level a10 b10 c10; told 0`},
		row{"the new node fails", `{"rebalance":{"perSecond":1,"minAge":"0s"}}`, `
			list a b c; careful 300 -> a100 b100 c100; list a b c d; refuses d; calm; calm; calm; atmost 10; level a100 b100 c100`},
		row{"the resource key changes", `{"rebalance":{"minAge":"0s","drainWithin":"0s"}}`, `
			list a b; sessions 20 -> a10 b10; config {"resourceKey":"KEY 2","rebalance":{"minAge":"0s","drainWithin":"0s"}}
			list a:0 b c; calm; level a10 b10; told 0; sessions 4 -> a10 b12 c2; list a b c:0; level a12 b12; told 2`},
		row{"programs that do not listen", `{"rebalance":{"minAge":"0s"}}`, `
			list a b c; deaf 300 -> a100 b100 c100; list a b c d; calm; calm; calm; atmost 20; level a100 b100 c100`},
	)
}

// A node that starts slowly gets streams as its part of its weight allows.
func TestStreamsMoveWithSlowStart(t *testing.T) {
	play(t, row{"", `{"slowStart":{"window":"10s"},"rebalance":{"perSecond":50,"minAge":"0s"}}`, `
		list a b c; sessions 300 -> a100 b100 c100; list a b c d; ramps d 300; level a75 b75 c75 d75; told 75`})
}

// ramp checks that the node has no more streams than its part of its weight allows, beside three
// whole ones, until it is whole.
func (p *player) ramp(name string, all float64) {
	s, n := p.script, p.script.nodes[name]
	for {
		got := float64(n.HeldStreams())
		part := p.member(n).SlowStartFactor
		require.LessOrEqual(s, got, all*part/(3+part)+1, "%s: streams at %s with %v of its weight", s.line, name, part)
		if part == 1 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
