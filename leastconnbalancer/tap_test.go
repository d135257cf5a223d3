package leastconnbalancer_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func init() { balancer.Register(tapBuilder{}) }

// tap is a policy above least_conn that notes the picks of one channel.
type tap struct {
	mu    sync.Mutex
	taken []*tapped
}

// tapped is one pick that went to a connection.
type tapped struct {
	rpc  any             // what the caller has put into the context
	ends <-chan struct{} // the Done channel of the pick's context
	done *balancer.DoneInfo
}

// rpcKey is where a caller names its RPC.
type rpcKey struct{}

func withRPC(ctx context.Context, name any) context.Context {
	return context.WithValue(ctx, rpcKey{}, name)
}

// picks returns copies of those made so far.
func (t *tap) picks() []tapped {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]tapped, len(t.taken))
	for i, p := range t.taken {
		all[i] = *p
	}
	return all
}

// taps finds a channel's tap by the dial target.
var taps struct {
	count    atomic.Int64
	byTarget sync.Map
}

// tapping is the service config with the tap above the policy.
func tapping(serviceConfig string) string {
	serviceConfig = strings.Replace(serviceConfig, "least_conn_parent", leastconnbalancer.Name, 1)
	return strings.Replace(serviceConfig, strconv.Quote(leastconnbalancer.Name), `"least_conn_tap"`, 1)
}

// dialTapped dials with the tap above least_conn.
func (l *lab) dialTapped(t *tap, cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *channel {
	l.Helper()
	if cfg.ServiceConfig == "" {
		cfg.ServiceConfig = leastconntest.DefaultServiceConfig
	}
	cfg.ServiceConfig = tapping(cfg.ServiceConfig)
	cfg.Target = "tap-" + strconv.FormatInt(taps.count.Add(1), 10)
	target := leastconntest.Scheme + ":///" + cfg.Target
	taps.byTarget.Store(target, t)
	l.Cleanup(func() { taps.byTarget.Delete(target) })
	return l.dialWith(cfg, nodes...)
}

// tapBuilder builds least_conn below a tap.
type tapBuilder struct{}

func (tapBuilder) Name() string { return "least_conn_tap" }

func (tapBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	t, _ := taps.byTarget.Load(opts.Target.String())
	return balancer.Get(leastconnbalancer.Name).Build(tapConn{cc, t.(*tap)}, opts)
}

func (tapBuilder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return balancer.Get(leastconnbalancer.Name).(balancer.ConfigParser).ParseConfig(js)
}

// tapConn embeds the ClientConn to intercept UpdateState.
type tapConn struct {
	balancer.ClientConn
	tap *tap
}

func (c tapConn) UpdateState(s balancer.State) {
	s.Picker = tapPicker{s.Picker, c.tap}
	c.ClientConn.UpdateState(s)
}

// tapPicker embeds the picker to intercept its picks.
type tapPicker struct {
	balancer.Picker
	tap *tap
}

func (p tapPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	res, err := p.Picker.Pick(info)
	if err != nil {
		return res, err
	}
	note := &tapped{rpc: info.Ctx.Value(rpcKey{}), ends: info.Ctx.Done()}
	p.tap.mu.Lock()
	p.tap.taken = append(p.tap.taken, note)
	p.tap.mu.Unlock()
	done := res.Done
	res.Done = func(info balancer.DoneInfo) {
		p.tap.mu.Lock()
		note.done = &info
		p.tap.mu.Unlock()
		done(info)
	}
	return res, nil
}
