package leastconntest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// elsewhere is a source that keeps the service configs that it was given.
type elsewhere struct {
	*manual.Resolver
	configs []string
}

func (e *elsewhere) Update(state resolver.State, serviceConfig string) error {
	e.configs = append(e.configs, serviceConfig)
	if len(e.configs) == 1 {
		e.InitialState(state)
	} else {
		e.UpdateState(state)
	}
	return nil
}

// A source has the first list, each later one and the service config that goes with it, and the
// target has its scheme.
func TestChannelWithSource(t *testing.T) {
	nodes := startNodes(t, leastconntest.Options{}, "a", "b")
	const first, second = `{"loadBalancingConfig":[{"round_robin":{}}]}`, `{"loadBalancingConfig":[{"pick_first":{}}]}`
	e := &elsewhere{Resolver: manual.NewBuilderWithScheme("elsewhere")}
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: first, Target: "x", Endpoints: leastconntest.Endpoints(nodes[0]),
		Source: func(target string) (leastconntest.Source, error) {
			assert.Equal(t, "x", target)
			return e, nil
		},
	})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.WaitServed(t.Context(), nodes[0]))
	require.NoError(t, c.UpdateNodes(nodes...))
	require.NoError(t, c.WaitServed(t.Context(), nodes...))
	require.NoError(t, c.UpdateConfig(second, leastconntest.Endpoints(nodes...)...))
	c.ReportError(errors.New("nobody hears of this"))
	assert.Equal(t, "elsewhere:///x", c.Key())
	assert.Equal(t, []string{first, first, second}, e.configs)

	_, err = leastconntest.Dial(leastconntest.ChannelConfig{Source: func(string) (leastconntest.Source, error) { return nil, errors.New("no source") }})
	require.ErrorContains(t, err, "no source")
}
