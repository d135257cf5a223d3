package leastconnbalancer_test

import (
	"context"
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

// parentPolicy names the policy above least_conn that records.
const parentPolicy = "least_conn_parent"

func init() { balancer.Register(recordingBuilder{}) }

// recordingPolicy is what a policy above least_conn does and sees in one channel.
type recordingPolicy struct {
	keyless   bool // builds its child without a target
	addresses bool // passes on addresses and no endpoints
	twice     bool // calls every Done twice, and once more when the next RPC ends
	rude      bool // makes further calls after Close, Close among them
	early     bool // reports errResolver for an empty list

	publishing atomic.Pointer[func()] // called before each picker is passed on

	picks, dones atomic.Int64
	earlier      atomic.Pointer[func(balancer.DoneInfo)] // the last RPC's Done

	mu    sync.Mutex
	taken []*recordedPick
}

// recordedPick is one pick that went to a connection.
type recordedPick struct {
	rpc  any             // what the caller has put into the context
	ends <-chan struct{} // the Done channel of the pick's context
	done *balancer.DoneInfo
}

var errResolver = errors.New("no such service")

// rpcKey is where a caller names its RPC.
type rpcKey struct{}

func withRPC(ctx context.Context, name any) context.Context {
	return context.WithValue(ctx, rpcKey{}, name)
}

// recorded returns copies of the picks made so far.
func (p *recordingPolicy) recorded() []recordedPick {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]recordedPick, len(p.taken))
	for i, pick := range p.taken {
		all[i] = *pick
	}
	return all
}

// recordingPolicies finds a channel's by the dial target.
var recordingPolicies struct {
	count    atomic.Int64
	byTarget sync.Map
}

// below is the service config with the recording policy above least_conn.
func below(serviceConfig string) string {
	return strings.Replace(serviceConfig, strconv.Quote(leastconnbalancer.Name), strconv.Quote(parentPolicy), 1)
}

// dialRecorded dials with the recording policy above least_conn.
func (e *env) dialRecorded(p *recordingPolicy, cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *channel {
	e.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = leastconntest.Endpoints(nodes...)
	}
	c := e.unusedRecorded(p, cfg)
	c.Connect()
	c.waitReady(nodes...)
	return c
}

func (e *env) unusedRecorded(p *recordingPolicy, cfg leastconntest.ChannelConfig) *channel {
	e.Helper()
	if cfg.ServiceConfig == "" {
		cfg.ServiceConfig = leastconntest.DefaultServiceConfig
	}
	cfg.ServiceConfig = below(cfg.ServiceConfig)
	cfg.Target = "recorded-" + strconv.FormatInt(recordingPolicies.count.Add(1), 10)
	target := leastconntest.Scheme + ":///" + cfg.Target
	recordingPolicies.byTarget.Store(target, p)
	e.Cleanup(func() { recordingPolicies.byTarget.Delete(target) })
	return e.unused(cfg)
}

// recordingBuilder builds least_conn below a recordingPolicy.
type recordingBuilder struct{}

func (recordingBuilder) Name() string { return parentPolicy }

func (recordingBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	v, _ := recordingPolicies.byTarget.Load(opts.Target.String())
	p := v.(*recordingPolicy)
	if p.keyless {
		opts.Target = resolver.Target{}
	}
	return recordingBalancer{balancer.Get(leastconnbalancer.Name).Build(recordingConn{cc, p}, opts), p}
}

func (recordingBuilder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return balancer.Get(leastconnbalancer.Name).(balancer.ConfigParser).ParseConfig(js)
}

// recordingBalancer embeds the child to intercept its calls.
type recordingBalancer struct {
	balancer.Balancer
	policy *recordingPolicy
}

func (b recordingBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	eps := s.ResolverState.Endpoints
	if len(eps) == 0 && b.policy.early {
		b.Balancer.ResolverError(errResolver)
		return nil
	}
	if b.policy.addresses {
		s.ResolverState.Endpoints, s.ResolverState.Addresses = nil, make([]resolver.Address, len(eps))
		for i, ep := range eps {
			s.ResolverState.Addresses[i] = ep.Addresses[0]
			//lint:ignore SA1019 a state without endpoints has no other place
			s.ResolverState.Addresses[i].BalancerAttributes = ep.Attributes
		}
	}
	return b.Balancer.UpdateClientConnState(s)
}

func (b recordingBalancer) Close() {
	b.Balancer.Close()
	if b.policy.rude {
		b.Balancer.ExitIdle()
		//lint:ignore SA1019 part of the interface all the same
		b.Balancer.UpdateSubConnState(nil, balancer.SubConnState{})
		b.Balancer.ResolverError(errors.New("too late"))
		_ = b.Balancer.UpdateClientConnState(balancer.ClientConnState{})
		b.Balancer.Close()
	}
}

// recordingConn embeds the ClientConn to intercept UpdateState.
type recordingConn struct {
	balancer.ClientConn
	policy *recordingPolicy
}

func (c recordingConn) UpdateState(s balancer.State) {
	if f := c.policy.publishing.Load(); f != nil {
		(*f)()
	}
	s.Picker = recordingPicker{s.Picker, c.policy}
	c.ClientConn.UpdateState(s)
}

// recordingPicker embeds the picker to intercept its picks.
type recordingPicker struct {
	balancer.Picker
	policy *recordingPolicy
}

func (p recordingPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	res, err := p.Picker.Pick(info)
	if err != nil || res.Done == nil {
		return res, err
	}
	pick := &recordedPick{rpc: info.Ctx.Value(rpcKey{}), ends: info.Ctx.Done()}
	p.policy.picks.Add(1)
	p.policy.mu.Lock()
	p.policy.taken = append(p.policy.taken, pick)
	p.policy.mu.Unlock()
	done := res.Done
	res.Done = func(info balancer.DoneInfo) {
		p.policy.dones.Add(1)
		p.policy.mu.Lock()
		pick.done = &info
		p.policy.mu.Unlock()
		done(info)
		if p.policy.twice {
			done(info)
			if earlier := p.policy.earlier.Swap(&done); earlier != nil {
				(*earlier)(info)
			}
		}
	}
	return res, nil
}
