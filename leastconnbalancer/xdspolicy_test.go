package leastconnbalancer_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// typedStruct is xds.type.v3.TypedStruct in JSON.
type typedStruct struct {
	Type    string          `json:"@type"`
	TypeURL string          `json:"type_url"`
	Value   json.RawMessage `json:"value"`
}

// typedStructOf reads the entry of a load_balancing_policy.
func typedStructOf(t *testing.T, policy string) typedStruct {
	t.Helper()
	var entry struct {
		Extension struct {
			Name   string      `json:"name"`
			Config typedStruct `json:"typed_config"`
		} `json:"typed_extension_config"`
	}
	d := json.NewDecoder(strings.NewReader(policy))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&entry))
	require.Equal(t, "least_conn", entry.Extension.Name)
	return entry.Extension.Config
}

// What a control plane reads and sends on is the configuration that it was made of.
func TestXDSPolicy(t *testing.T) {
	percent, queued := 0.1, uint32(1_000_000)
	for _, c := range []leastconnbalancer.Config{
		{},
		{ResourceKey: `{target}/"ü` + "\n", OnFull: leastconnbalancer.OnFullFail, MaxInFlight: math.MaxInt32, MaxQueued: &queued},
		{
			PriorityFailover: leastconnbalancer.NewDuration(1242232122), StartupWait: leastconnbalancer.NewDuration(0),
			SlowStart: &leastconnbalancer.SlowStart{Window: leastconnbalancer.Duration(time.Hour), MinWeightPercent: &percent},
			Reports:   &leastconnbalancer.Reports{Interval: leastconnbalancer.Duration(time.Second)},
		},
	} {
		got := typedStructOf(t, c.XDSPolicy())
		require.Equal(t, "type.googleapis.com/xds.type.v3.TypedStruct", got.Type)
		require.Equal(t, "type.googleapis.com/least_conn", got.TypeURL)
		var value structpb.Struct
		require.NoError(t, protojson.Unmarshal(got.Value, &value))
		sent, err := json.Marshal(&value) // which is how grpc-go hands it on
		require.NoError(t, err)
		parsed, err := parse(string(sent))
		require.NoError(t, err)
		require.Equal(t, c, parsed)
	}
}

// A configuration that cannot be rendered is refused where it is read.
func TestXDSPolicyThatCannotBeRendered(t *testing.T) {
	c := leastconnbalancer.Config{SlowStart: &leastconnbalancer.SlowStart{Aggression: new(float64)}}
	*c.SlowStart.Aggression = math.NaN()
	got := typedStructOf(t, c.XDSPolicy())
	require.Contains(t, string(got.Value), "NaN")
	require.Error(t, protojson.Unmarshal(got.Value, new(structpb.Struct)))
}
