package integration

import (
	"encoding/json"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// doublePolicy is a policy above least_conn that reports each end of an RPC twice.
const doublePolicy = "test_double_releases"

func init() { balancer.Register(doubleBuilder{}) }

type doubleBuilder struct{}

func (doubleBuilder) Name() string { return doublePolicy }

func (doubleBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return balancer.Get(leastconnbalancer.Name).Build(doubleConn{cc}, opts)
}

func (doubleBuilder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return balancer.Get(leastconnbalancer.Name).(balancer.ConfigParser).ParseConfig(js)
}

// doubleConn is embedded to intercept UpdateState.
type doubleConn struct{ balancer.ClientConn }

func (c doubleConn) UpdateState(s balancer.State) {
	s.Picker = doublePicker{s.Picker}
	c.ClientConn.UpdateState(s)
}

type doublePicker struct{ balancer.Picker }

func (p doublePicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	r, err := p.Picker.Pick(info)
	if done := r.Done; done != nil {
		r.Done = func(i balancer.DoneInfo) { done(i); done(i) }
	}
	return r, err
}
