package debugpage_test

import (
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// hostile are names that try to be more than text.
var hostile = []string{
	`<script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`,
	`' onmouseover='alert(1)`,
	`</title></h2></table></main><svg onload=alert(1)>`,
	"javascript:alert(1)",
	"{{.Process}} ${alert(1)} <!-- ]]>",
	"\x1b[31mred\x1b[0m\x1b]0;title\x07",
	"two\nlines\r\nthree\tcells\vand\fmore",
	"\u202egpj.exe \u2066\ufeff\x00\x7f\u0085",
	"not \xff\xfe UTF-8",
	strings.Repeat("long", 1000),
}

// attack serves each hostile name as key, channel, id and address.
func attack(t *testing.T) {
	for _, name := range hostile {
		s := serve(t, name, name, state.Identity{ID: name, Addrs: []string{name, name + " two"}}, state.Identity{Addrs: []string{"only " + name}})
		s.load(s.members[0], 1)
		s.unsound(name)
	}
}

// unsound has the endpoints' connections fail with a text, by a configuration that has it.
func (s *service) unsound(text string) {
	for _, m := range s.members {
		c := state.Connectivity{State: "TRANSIENT_FAILURE", Since: time.Now()}
		c.Failed(errors.New(text))
		m.SetConnectivity(c)
	}
	s.view.Remove(s.members[1])
	js, _ := json.Marshal(map[string]string{"resourceKey": text})
	s.SetConfig(js)
}

var (
	tag    = regexp.MustCompile(`<(/?[a-zA-Z!][^>]*)>`)
	quoted = regexp.MustCompile(`(title|value|href|data-h|data-newest)="[^"]*"`)
)

// tagsOf returns those of a page, without what their quoted names are.
func tagsOf(page string) (tags []string) {
	for _, m := range tag.FindAllStringSubmatch(quoted.ReplaceAllString(page, `$1=""`), -1) {
		tags = append(tags, m[1])
	}
	return tags
}

// The page has the same tags whatever names there are.
func TestHostileNamesInHTML(t *testing.T) {
	s := newEnv(t)
	shape := func() []string {
		return tagsOf(s.do(http.MethodGet, "/", browser).body)
	}
	harmless := make([]*service, len(hostile))
	for i := range harmless {
		harmless[i] = serve(t, "service"+string(rune('a'+i)), "channel", state.Identity{ID: "id", Addrs: []string{"a", "b"}}, state.Identity{Addrs: []string{"c"}})
		harmless[i].load(harmless[i].members[0], 1)
		harmless[i].unsound("harmless")
	}
	want := shape()
	for _, h := range harmless {
		for _, l := range h.leases {
			l.Release()
		}
		h.Close()
	}
	attack(t)
	got := shape()
	require.Subset(t, got, want)
	require.Subset(t, want, got, "no other tags or attributes")
	page := s.do(http.MethodGet, "/", browser).body
	for _, name := range hostile[:6] {
		require.True(t, strings.Contains(html.UnescapeString(page), name), "%s is shown as it is", name)
	}
}

// What the query says comes back as text, too.
func TestHostileQueryInHTML(t *testing.T) {
	s := newEnv(t)
	want := tagsOf(s.do(http.MethodGet, "/?key=nobody&q=nothing", browser).body)
	for _, name := range hostile {
		page := s.do(http.MethodGet, "/?"+url.Values{"key": {name}, "q": {name}}.Encode(), browser).body
		require.Equal(t, want, tagsOf(page), name)
	}
}

// A terminal sees characters that can be seen, each service on lines of its own.
func TestHostileNamesInText(t *testing.T) {
	s := newEnv(t)
	attack(t)
	text := s.get("")
	for i, r := range text {
		require.True(t, r == '\n' || unicode.IsPrint(r), "%U at %d: %q", r, i, text[max(0, i-20):i])
		require.NotEqual(t, unicode.ReplacementChar, r)
	}
	require.Equal(t, len(hostile), strings.Count(text, "\nendpoint "))
	for _, line := range strings.Split(text, "\n") {
		for _, forged := range []string{"lines", "three", "red"} {
			require.False(t, strings.HasPrefix(line, forged), line)
		}
	}
	require.Contains(t, text, `"\x1b[31mred\x1b[0m\x1b]0;title\a"`)
}

// JSON has the names as they are, and nothing that a browser could take for
// markup.
func TestHostileNamesInJSON(t *testing.T) {
	s := newEnv(t)
	attack(t)
	require.NotContains(t, s.get("?format=json"), "<")
	require.NotContains(t, s.get("?format=json"), "&")
	names := map[string]bool{}
	for _, sv := range s.json("").Services {
		names[sv.ResourceKey] = true
		require.Equal(t, sv.ResourceKey, sv.EndpointSets[0].Name)
	}
	for _, name := range hostile {
		require.True(t, names[strings.ToValidUTF8(name, "\ufffd\ufffd")], name)
	}
}
