package reports_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/reports"
)

// A program that asks for reports and forgets the import is told so at once; values that are wrong in
// themselves come first.
func TestReportsWithoutTheirImport(t *testing.T) {
	const again = "LEASTCONN_TEST_UNLINKED"
	if os.Getenv(again) == "" { // other tests of this process register a listener
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestReportsWithoutTheirImport$")
		cmd.Env = append(os.Environ(), again+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	require.False(t, reports.Linked())
	parser := balancer.Get("least_conn").(balancer.ConfigParser)
	for js, says := range map[string]string{
		`{"reports":{"interval":"10s"}}`: `least_conn: field reports: value {"interval":"10s"}: want no such field in a program without ` +
			`import _ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload"`,
		`{"reports":{"interval":"1s","a":1}}`: `least_conn: field reports: value {"interval":"1s","a":1}: want no such field in a program without ` +
			`import _ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload"`,
		`{"reports":{"interval":"1ms"}}`: `least_conn: field reports.interval: value "1ms": want a duration from "100ms" to "3600s", such as "10s"`,
	} {
		_, err := parser.ParseConfig(json.RawMessage(js))
		require.EqualError(t, err, says)
	}
	_, err := parser.ParseConfig(json.RawMessage(`{"reports":null}`))
	require.NoError(t, err)
}
