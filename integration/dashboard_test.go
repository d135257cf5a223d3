package integration

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafanaprometheus "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const dashboardFile = "../docs/grafana-dashboard.json"

// board is the dashboard, as far as the tests read it.
type board struct {
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []panel
}

type panel struct {
	Title   string
	Targets []struct{ RefID, Expr string }
}

func dashboard(t *testing.T) (b board) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &b))
	return b
}

// queries returns the panels' queries by title and letter, with the dashboard's
// variables replaced as Grafana does.
func (b board) queries(t *testing.T, instance, target string) map[string]string {
	t.Helper()
	variables := strings.NewReplacer("$instance", instance, "$target", target, "$__rate_interval", "1m")
	queries := map[string]string{}
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			name := p.Title + " " + q.RefID
			require.NotContains(t, queries, name)
			queries[name] = variables.Replace(q.Expr)
		}
	}
	return queries
}

// pattern is a value of a variable that is matched as a regular expression.
func pattern(value string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(value), `\`, `\\`)
}

// reportPanels show something where reports are on.
var reportPanels = regexp.MustCompile(`^(Load of the fleet by endpoint|Spread of the fleet|Age of reports|Silent endpoints) A$`)

// runs waits until each query has an answer, of numbers: for one process and target and
// for all. Those of reports have none.
func (b board) runs(p *prometheusServer, instance, target string) {
	p.Helper()
	p.until("all panels show something", func(now *assert.CollectT) {
		for _, chosen := range [][2]string{{pattern(instance), pattern(target)}, {".*", ".*"}} {
			for panel, expr := range b.queries(p.T, chosen[0], chosen[1]) {
				assert.NotContains(now, expr, "$", panel)
				found := p.query(now, expr)
				if reportPanels.MatchString(panel) {
					assert.Empty(now, found, panel)
					continue
				}
				assert.NotEmpty(now, found, "%s: %s", panel, expr)
				for _, s := range found {
					v, err := strconv.ParseFloat(s.Value[1].(string), 64)
					assert.NoError(now, err, panel)
					assert.False(now, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "%s: %v", panel, v)
				}
			}
		}
	})
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// offers requires that a variable of the dashboard has a value.
func (b board) offers(p *prometheusServer, instance, variable, value string) {
	p.Helper()
	for _, v := range b.Templating.List {
		if v.Name != variable {
			continue
		}
		text := v.Query.(map[string]any)["query"].(string)
		m := labelValues.FindStringSubmatch(strings.ReplaceAll(text, "$instance", pattern(instance)))
		require.NotNil(p, m, text)
		require.Contains(p, p.labelValues(m[2], m[1]), value, text)
		return
	}
	require.Fail(p, "no variable "+variable)
}

// Grafana's own types take the dashboard up, down to the last field, and its
// panels do not cover each other.
func TestDashboardIsGrafanas(t *testing.T) {
	runtime := cog.NewRuntime()
	runtime.RegisterDataqueryVariant(grafanaprometheus.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	//lint:ignore SA1019 the model that all releases of Grafana import
	var d grafana.Dashboard
	require.Empty(t, d.UnmarshalJSONStrict(text)) // never nil
	require.NoError(t, d.Validate())
	require.Equal(t, grafana.NewDashboard().SchemaVersion, d.SchemaVersion)

	var raw struct{ Panels []json.RawMessage }
	require.NoError(t, json.Unmarshal(text, &raw))
	require.NotEmpty(t, raw.Panels)
	taken := map[string]string{}
	ids := map[uint32]bool{}
	for _, r := range raw.Panels {
		var p grafana.Panel
		require.Empty(t, p.UnmarshalJSONStrict(r))
		require.NoError(t, p.Validate())
		require.Contains(t, []string{"stat", "timeseries"}, p.Type, "no options of others are checked")
		require.NotContains(t, ids, *p.Id)
		ids[*p.Id] = true
		require.Equal(t, "${datasource}", *p.Datasource.Uid)
		for _, q := range p.Targets {
			require.Equal(t, "${datasource}", *q.(*grafanaprometheus.Dataquery).Datasource.Uid)
		}
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, uint32(24), *p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				at := fmt.Sprint(x, ",", y)
				require.Empty(t, taken[at], "%s covers another panel", *p.Title)
				taken[at] = *p.Title
			}
		}
	}
}
