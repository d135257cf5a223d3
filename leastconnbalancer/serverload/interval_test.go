package serverload

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Clients are told as often as they ask, within bounds.
func TestIntervals(t *testing.T) {
	for want, asked := range map[time.Duration][]*durationpb.Duration{
		100 * time.Millisecond: {durationpb.New(100 * time.Millisecond), durationpb.New(1)},
		time.Second:            {durationpb.New(time.Second)},
		time.Hour:              {durationpb.New(time.Hour)},
		30 * time.Second: {nil, {}, durationpb.New(-time.Second), {Seconds: math.MinInt64}, {Seconds: math.MaxInt64},
			{Seconds: 1, Nanos: -1}},
	} {
		for _, a := range asked {
			require.Equal(t, want, interval(&v3orcaservicegrpc.OrcaLoadReportRequest{ReportInterval: a}), "%v", a)
		}
	}
}

// The rate is that of the last ten seconds, whoever asks how often.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := New(Options{})
		for second := range 60 {
			for range 10 {
				load.begun.Add(int64(second / 20 * 3)) // 0, 30, then 60 RPCs per second
				time.Sleep(100 * time.Millisecond)
				qps := load.ServerMetrics().QPS
				switch second {
				case 19:
					require.Zero(t, qps)
				case 39:
					require.InDelta(t, 30, qps, 3)
				case 59:
					require.InDelta(t, 60, qps, 6)
				}
			}
		}
		for range 3 { // those who ask seldom
			load.begun.Add(600)
			time.Sleep(time.Minute)
			require.Equal(t, 10.0, load.ServerMetrics().QPS)
		}
	})
}
