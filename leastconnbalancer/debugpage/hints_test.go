package debugpage_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Without a channel the page says where one that was meant to be there went.
func TestNoChannelIsExplained(t *testing.T) {
	s := newEnv(t)
	for _, format := range []string{"html", "text"} {
		for _, hint := range []string{"uses pick_first by mistake", "names are case-sensitive", "GRPC_GO_LOG_SEVERITY_LEVEL=info"} {
			require.Contains(t, s.get("?format="+format), hint)
			require.NotContains(t, s.get("?key=nobody&format="+format), hint, "the filter may be why")
		}
	}
	sv := serve(t, t.Name(), "dns:///api", at("a")...)
	require.NotContains(t, s.get(""), "pick_first")
	sv.load(sv.members[0], 1)
	sv.Close()
	require.Contains(t, s.get(""), "departed")
	require.Contains(t, s.get(""), "uses pick_first by mistake")
}

// Warnings stand with their channel, in each form.
func TestWarningsAreShown(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "dns:///api", at("a")...)
	texts := []string{"<one>", "two"}
	sv.SetWarnings(texts)
	texts[1] = "changed"
	require.Contains(t, s.get("?key="+t.Name()), "WARNING dns:///api: <one>\nWARNING dns:///api: two\n")
	require.Contains(t, s.get("?format=html&key="+t.Name()), "<p class=\"warning\">&lt;one&gt;</p><p class=\"warning\">two</p>")
	require.Contains(t, s.get("?format=json&key="+t.Name()), "\"two\"\n")
	sv.SetWarnings(nil)
	require.NotContains(t, s.get("?format=json&key="+t.Name()), "warnings")
}
