package leastconntest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

var (
	fruitCount = estats.RegisterInt64Count(estats.MetricDescriptor{
		Name: "leastconntest.fruit", Unit: "{fruit}", Description: "For a test.", Labels: []string{"kind"}, OptionalLabels: []string{"place"},
	})
	levelGauge = estats.RegisterInt64AsyncGauge(estats.MetricDescriptor{
		Name: "leastconntest.level", Unit: "m", Description: "For a test.", Labels: []string{"place"},
	})
)

// level reports the level at places in turn.
func level(at map[string]int64, places ...string) estats.AsyncMetricReporter {
	return estats.AsyncMetricReporterFunc(func(r estats.AsyncMetricsRecorder) error {
		for _, p := range places {
			levelGauge.Record(r, at[p], p)
		}
		return nil
	})
}

func TestRecorderKeepsCounts(t *testing.T) {
	r := leastconntest.NewRecorder()
	_, found := r.Value("leastconntest.fruit")
	assert.False(t, found)
	for _, place := range []string{"tree", "shelf", "tree"} {
		fruitCount.Record(r, 2, "apple", place)
	}
	fruitCount.Record(r, 0, "pear", "shelf")
	for _, c := range []struct {
		labels []string
		want   int64
		found  bool
	}{
		{nil, 6, true},
		{[]string{"kind", "apple", "place", "tree"}, 4, true},
		{[]string{"kind", "pear"}, 0, true},
		{[]string{"kind", "plum"}, 0, false},
		{[]string{"size", "big"}, 0, false},
	} {
		got, found := r.Value("leastconntest.fruit", c.labels...)
		assert.Equal(t, c.want, got, c.labels)
		assert.Equal(t, c.found, found, c.labels)
	}
	all := r.Collect()
	assert.Len(t, all, 3)
	assert.Equal(t, []string{"apple", "shelf"}, all[0].Labels, "in order")
	assert.Equal(t, []string{"kind", "place"}, all[0].Names())
	assert.Equal(t, "tree", all[1].Label("place"))
	assert.Empty(t, all[1].Label("size"))
}

func TestRecorderAsksForGauges(t *testing.T) {
	r := leastconntest.NewRecorder()
	at := map[string]int64{"here": 3, "there": 5}
	value := func(place string) any {
		if v, found := r.Value("leastconntest.level", "place", place); found {
			return int(v)
		}
		return nil
	}
	stopBoth := r.RegisterAsyncReporter(level(at, "here", "there"), levelGauge)
	stopOne := r.RegisterAsyncReporter(level(at, "here"), levelGauge)
	assert.Equal(t, 3, value("here"), "not the sum of both reports")
	at["here"] = 4
	assert.Equal(t, 4, value("here"))
	stopBoth()
	stopBoth()
	assert.Equal(t, 4, value("here"))
	assert.Nil(t, value("there"))
	stopOne()
	assert.Nil(t, value("here"))
}
