package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// An error names the flag, its value and what is allowed, and nothing is run.
func TestFlagsAreChecked(t *testing.T) {
	taken := startNodes(t, "")[0]
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"surplus"}, []string{"surplus"}},
		{[]string{"-max-age", "5s"}, []string{"-max-age is 5s", "-target of addresses"}},
		{[]string{"-max-age", "5s", "-watch"}, []string{"-max-age is 5s", "-target of addresses"}},
		{[]string{"-max-age", "5s", "-target", "dns:///x:1"}, []string{"-max-age is 5s", "-target of addresses"}},
		{[]string{"-max-age", "-5s", "-target", "x"}, []string{"-max-age is -5s", "0 or more"}},
		{[]string{"-every", "0s", "-watch"}, []string{"-every is 0s", "more than 0"}},
		{[]string{"-every", "-1s", "-target", "nodes:///x"}, []string{"-every is -1s", "more than 0"}},
		{[]string{"-for", "-1s", "-target", "nodes:///x"}, []string{"-for is -1s", "0 or more"}},
		{[]string{"-for", "1s"}, []string{"-for ", "-watch", "-http", "-target"}},
		{[]string{"-every", "1s", "-target", "a:1,b:1,c:1"}, []string{"-every ", "-watch", "-http", "-target"}},
		{[]string{"-watch", "-target", "a:1,b:1,c:1"}, []string{`-target is "a:1,b:1,c:1"`, "-watch", "scheme"}},
		{[]string{"-http", "127.0.0.1:0", "-target", "a:1"}, []string{`-target is "a:1"`, "-http", "scheme"}},
		{[]string{"-http", ""}, []string{`-http is ""`, "127.0.0.1:8080"}},
		{[]string{"-http", "8080"}, []string{`-http "8080"`, "127.0.0.1:8080"}},
		{[]string{"-http", "127.0.0.1:80800"}, []string{`-http "127.0.0.1:80800"`, "127.0.0.1:8080"}},
		{[]string{"-http", taken.Addr()}, []string{`-http "` + taken.Addr() + `"`, "free"}},
		{[]string{"-target", "dns:///%zz"}, []string{`-target "dns:///%zz"`, "%zz"}},
		{[]string{"-target", "a:1,b:1"}, []string{"-target names 2 servers", "at least 3"}},
	} {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		status, err := run(ctx, c.args, &out)
		cancel()
		assert.Equal(t, exitFailed, status, c.args)
		for _, want := range c.want {
			assert.ErrorContains(t, err, want, c.args)
		}
		assert.Empty(t, out.String(), c.args)
	}
}
