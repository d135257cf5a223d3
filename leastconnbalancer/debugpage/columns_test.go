package debugpage_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// order returns the endpoints' names in the page and in the text, which must be the same.
func (s *env) order(query string) (names string) {
	s.Helper()
	for _, row := range rows(s.get("?format=html&" + query)) {
		names += row[1:2]
	}
	text := ""
	for _, line := range regexp.MustCompile(`(?m)^(.) +(ready|not_ready) `).FindAllStringSubmatch(s.get("?"+query), -1) {
		text += line[1]
	}
	require.Equal(s, names, text)
	return names
}

// Endpoints are in the order of a column; those that lack the figure come last.
func TestSort(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "", at("a", "b", "c", "d")...)
	sv.SetGuards(state.Guards{FailurePenalty: time.Nanosecond})
	for i, n := range []int{1, 4, 2, 3} {
		sv.load(sv.members[i], n)
	}
	sv.view.Set(sv.members[1], 8, nil)
	sv.members[0].SetMaxInFlight(9)
	sv.members[2].SetMaxInFlight(5)
	sv.leases[9].Fail() // of d
	sv.view.Remove(sv.members[3])
	for sort, want := range map[string]string{
		"": "abcd", "name": "abcd", "-name": "dcba", "in_flight": "acdb", "-in_flight": "bcda", "-load": "cadb", "highest": "acdb",
		"cap": "cabd", "-cap": "acbd", "weight": "cabd", "-weight": "bcad", "failures": "bcad", "-failures": "dbca", "picks": "acdb",
		"-score": "cabd", "oldest": "", "since": "", "connected": "", "priority": "bcad",
	} {
		got := s.order("key=" + t.Name() + "&sort=" + sort)
		if want != "" {
			require.Equal(t, want, got, sort)
		}
	}
	require.Equal(t, "dc", s.order("top=2&sort=-name&key="+t.Name()))
	require.Contains(t, s.get("?format=html&top=2&sort=-weight&key="+t.Name()), "The first 2 of 4 endpoints, by weight; raise")
	require.Equal(t, "dcba", s.order("sort=weight&sort=-name&key="+t.Name()), "a button comes after the form's own")
}

// The head of a column says how it is sorted, and its button turns that round.
func TestColumnHeads(t *testing.T) {
	s := newEnv(t)
	serve(t, t.Name(), "", at("a")...)
	for sort, want := range map[string]string{
		"":         `class="c-name" aria-sort="ascending"><button form="show" name="sort" value="-name">endpoint</button>`,
		"weight":   `class="n c-weight" aria-sort="ascending"><button form="show" name="sort" value="-weight">weight</button>`,
		"-weight":  `class="n c-weight" aria-sort="descending"><button form="show" name="sort" value="weight">weight</button>`,
		"priority": `class="n c-weight"><button form="show" name="sort" value="-weight">weight</button>`,
	} {
		page := s.get("?format=html&key=" + t.Name() + "&sort=" + sort)
		require.Contains(t, page, want)
		require.Equal(t, 1, strings.Count(page, "aria-sort="))
		require.Contains(t, page, `scope="col"`)
		require.Contains(t, page, fmt.Sprintf(`<option value=%q`, sort))
		require.Equal(t, min(1, len(sort)), strings.Count(page, " selected"))
		require.Contains(t, page, "&amp;sort="+sort+"&amp;top=100")
	}
}

// Where columns have no heads each figure has its label.
func TestCardsHaveLabels(t *testing.T) {
	s := newEnv(t)
	sv := reporting(t)
	dear, _, _ := sv.AcquireOrQueue(state.WithCost(t.Context(), 7), nil, sv.view)
	sv.leases = append(sv.leases, dear)
	css, err := os.ReadFile("page.css")
	require.NoError(t, err)
	page := s.do(http.MethodGet, "/?key="+t.Name(), browser).body
	heads := regexp.MustCompile(`class="n (c-[a-z_]+)".*?<button[^>]*>([^<]*)<`).FindAllStringSubmatch(page, -1)
	require.Len(t, heads, 14)
	cells := regexp.MustCompile(`<td class="n (c-[a-z_]+)">`).FindAllStringSubmatch(rows(page)[0], -1)
	require.Len(t, cells, len(heads))
	for i, head := range heads {
		require.Contains(t, string(css), fmt.Sprintf("  .endpoints .%s::before { content: %q; }\n", head[1], head[2]))
		require.Equal(t, head[1], cells[i][1])
	}
}

// Each form shows the endpoints of one state alone.
func TestStateFilter(t *testing.T) {
	s := newEnv(t)
	varied(t)
	for is, want := range map[string][]string{
		"": {"departs", "draining", "failed", "full", "not-ready", "pod-new", "ready"}, "ready": {"failed", "full", "pod-new", "ready"},
		"full": {"full"}, "draining": {"draining"}, "not_ready": {"not-ready"}, "departed": {"departs"},
	} {
		query := "key=" + t.Name() + "&state=" + is
		page := s.get("?format=html&" + query)
		var names, inJSON []string
		for _, row := range rows(page) {
			names = append(names, regexp.MustCompile(`>([a-z-]+)`).FindStringSubmatch(row)[1])
		}
		for _, n := range s.json("&" + query).Services[0].Endpoints {
			inJSON = append(inJSON, n.Address())
		}
		require.Equal(t, want, names, is)
		require.Len(t, inJSON, len(want))
		require.Equal(t, len(want), len(regexp.MustCompile(`(?m)^[a-z-]+ +(ready|draining|not_ready|departed) +\d`).FindAllString(s.get("?"+query), -1)))
		require.Equal(t, is == "", strings.Contains(page, " data-whole"), "else what is missing has not left")
		require.Contains(t, page, "&amp;state="+is+"&amp;")
	}
	require.Contains(t, s.get("?format=html&q=nobody&state=full&key="+t.Name()), "No endpoint that fits the filter.")
}
