package main

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload" // reports
)

// channelSpec is a channel of a run.
type channelSpec struct {
	name      string
	policy    leastconnbalancer.Config // with a resource key
	ids       bool                     // endpoints have the names of their members as ids; all channels of a key agree on it
	each      int                      // it lists each so-manieth member
	levels    int                      // priority levels that the members are spread over
	retries   bool                     // UNAVAILABLE is retried
	health    bool                     // servers that are not serving get no RPCs
	intercept bool                     // with the policy's interceptors
	rate      int                      // RPCs per second, bursts apart
	idle      time.Duration            // without RPCs for so long it closes its connections; 0: it does not
}

// The resource keys. Nodes of the second one are known by their ids, the others by their addresses.
const (
	sharedKey = "soak"
	namedKey  = "soak by id"
	rareKey   = "soak, rarely"
)

// moved is what the resource key of a channel ends with while a fault has moved it to another ledger.
const moved = ", moved"

// eagerRate is in moves per second.
var eagerRate = 100.0

// eager lets sessions move however young they are.
var eager = &leastconnbalancer.Rebalance{PerSecond: &eagerRate, MinAge: leastconnbalancer.NewDuration(0), DrainWithin: leastconnbalancer.NewDuration(200 * time.Millisecond)}

// reportsEach has servers asked for their load so often.
func reportsEach(interval time.Duration) *leastconnbalancer.Reports {
	return &leastconnbalancer.Reports{Interval: leastconnbalancer.Duration(interval)}
}

// channelSpecs are the channels. What else the policy can be told goes into their policies.
var channelSpecs = []channelSpec{
	{name: "plain", policy: leastconnbalancer.Config{ResourceKey: sharedKey, Rebalance: eager, Reports: reportsEach(100 * time.Millisecond)},
		each: 1, levels: 1, rate: 80},
	{name: "retrying", policy: leastconnbalancer.Config{ResourceKey: sharedKey}, each: 1, levels: 1, rate: 80, retries: true},
	{name: "tiered", policy: leastconnbalancer.Config{
		ResourceKey:      sharedKey,
		PriorityFailover: leastconnbalancer.NewDuration(100 * time.Millisecond),
		Rebalance:        eager,
		Reports:          reportsEach(300 * time.Millisecond),
	}, each: 1, levels: 3, rate: 80, retries: true, intercept: true},
	{name: "named", policy: leastconnbalancer.Config{ResourceKey: namedKey, Rebalance: eager, Reports: reportsEach(200 * time.Millisecond)},
		ids: true, each: 1, levels: 1, rate: 60, retries: true, health: true},
	{name: "named half", policy: leastconnbalancer.Config{
		ResourceKey: namedKey,
		StreamLimit: leastconnbalancer.StreamLimitIgnore,
	}, ids: true, each: 2, levels: 2, rate: 60},
	{name: "guarded", policy: leastconnbalancer.Config{
		ResourceKey:    sharedKey,
		FailurePenalty: leastconnbalancer.NewDuration(300 * time.Millisecond),
		MaxInFlight:    10, // of all channels of the key: so RPCs of this one wait at times
		SlowStart:      &leastconnbalancer.SlowStart{Window: leastconnbalancer.Duration(2 * time.Second)},
	}, each: 1, levels: 2, rate: 80, retries: true},
	{name: "rare", policy: leastconnbalancer.Config{ResourceKey: rareKey}, each: 1, levels: 1, rate: 3, idle: idleTimeout()},
}

// idleTimeout is that of the channel that is used rarely. grpc-go before 1.84 counts the end of an RPC twice whose stream
// could not be created: then a channel never becomes idle any more, or does so while an RPC runs. There it has none.
func idleTimeout() time.Duration {
	var major, minor int
	if _, err := fmt.Sscanf(grpc.Version, "%d.%d", &major, &minor); err != nil || major == 1 && minor < 84 {
		return 0
	}
	return 200 * time.Millisecond
}

// serviceConfig renders the channel's service config with a policy.
func (s channelSpec) serviceConfig(policy leastconnbalancer.Config) (string, error) {
	config := map[string]any{}
	if err := json.Unmarshal([]byte(policy.ServiceConfig()), &config); err != nil {
		return "", err
	}
	if s.retries {
		config["methodConfig"] = []any{map[string]any{
			"name": []any{map[string]any{}},
			"retryPolicy": map[string]any{
				"maxAttempts":          4,
				"initialBackoff":       "0.01s",
				"maxBackoff":           "0.1s",
				"backoffMultiplier":    2,
				"retryableStatusCodes": []string{"UNAVAILABLE"},
			},
		}}
	}
	if s.health {
		config["healthCheckConfig"] = map[string]any{"serviceName": ""}
	}
	text, err := json.Marshal(config)
	return string(text), err
}
