package leastconnbalancer_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const parentConfig = `{"loadBalancingConfig":[{"least_conn_parent":{}}]}`

func init() { balancer.Register(parentBuilder{}) }

// parent is what a policy above least_conn does and sees in one channel.
type parent struct {
	keyless bool // builds its child without a target
	twice   bool // calls every Done twice, and once more when the next RPC ends
	rude    bool // makes further calls after Close, Close among them
	early   bool // reports errResolver for an empty list

	picks, dones atomic.Int64
	earlier      atomic.Pointer[func(balancer.DoneInfo)] // the last RPC's Done
}

var errResolver = errors.New("no such service")

// parents finds a channel's parent by the dial target.
var parents struct {
	count    atomic.Int64
	byTarget sync.Map
}

// dialParent dials with the parent above least_conn.
func (l *lab) dialParent(p *parent, cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *channel {
	l.Helper()
	cfg.Target = "parent-" + strconv.FormatInt(parents.count.Add(1), 10)
	if cfg.ServiceConfig == "" {
		cfg.ServiceConfig = parentConfig
	}
	cfg.ServiceConfig = strings.Replace(cfg.ServiceConfig, strconv.Quote(leastconnbalancer.Name), `"least_conn_parent"`, 1)
	target := leastconntest.Scheme + ":///" + cfg.Target
	parents.byTarget.Store(target, p)
	l.Cleanup(func() { parents.byTarget.Delete(target) })
	if p.keyless {
		cfg.Endpoints = leastconntest.Endpoints(nodes...)
		nodes = nil // its ledger has no key to wait by
	}
	return l.dialWith(cfg, nodes...)
}

// parentBuilder builds least_conn below a parent.
type parentBuilder struct{}

func (parentBuilder) Name() string { return "least_conn_parent" }

func (parentBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	v, _ := parents.byTarget.Load(opts.Target.String())
	p := v.(*parent)
	if p.keyless {
		opts.Target = resolver.Target{}
	}
	child := balancer.Get("least_conn").Build(parentConn{cc, p}, opts)
	return parentBalancer{child, p}
}

func (parentBuilder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return balancer.Get("least_conn").(balancer.ConfigParser).ParseConfig(js)
}

// parentBalancer embeds the child to intercept its calls.
type parentBalancer struct {
	balancer.Balancer
	parent *parent
}

func (b parentBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	if len(s.ResolverState.Endpoints) == 0 && b.parent.early {
		b.Balancer.ResolverError(errResolver)
		return nil
	}
	return b.Balancer.UpdateClientConnState(s)
}

func (b parentBalancer) Close() {
	b.Balancer.Close()
	if b.parent.rude {
		b.Balancer.ExitIdle()
		//lint:ignore SA1019 part of the interface all the same
		b.Balancer.UpdateSubConnState(nil, balancer.SubConnState{})
		b.Balancer.ResolverError(errors.New("too late"))
		b.Balancer.Close()
	}
}

// parentConn embeds the ClientConn to intercept UpdateState.
type parentConn struct {
	balancer.ClientConn
	parent *parent
}

func (c parentConn) UpdateState(s balancer.State) {
	s.Picker = parentPicker{s.Picker, c.parent}
	c.ClientConn.UpdateState(s)
}

// parentPicker counts picks and Dones.
type parentPicker struct {
	balancer.Picker
	parent *parent
}

func (p parentPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	res, err := p.Picker.Pick(info)
	if err != nil {
		return res, err
	}
	p.parent.picks.Add(1)
	done := res.Done
	res.Done = func(info balancer.DoneInfo) {
		p.parent.dones.Add(1)
		done(info)
		if p.parent.twice {
			done(info)
			if earlier := p.parent.earlier.Swap(&done); earlier != nil {
				(*earlier)(info)
			}
		}
	}
	return res, nil
}
