package integration

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPeersRefuseBadFlags: a wrong flag is named, with its value and what is
// allowed.
func TestPeersRefuseBadFlags(t *testing.T) {
	eachLanguage(t, func(t *testing.T, lang language) {
		for flag, want := range map[string][]string{
			"--port=65536":    {"--port", `"65536"`, "0 to 65535"},
			"--port=x":        {"--port", `"x"`, "0 to 65535"},
			"--max-age-ms=-1": {"--max-age-ms", `"-1"`, "0 to 86400000"},
			"--name=":         {"--name", `""`, "a name is needed"},
			"--nonesuch=1":    {"--nonesuch"},
		} {
			c := lang.built(t)
			c.Args = append(c.Args, flag)
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", out)
			require.Equal(t, 2, exit.ExitCode(), "%s", out)
			for _, part := range want {
				require.Contains(t, string(out), part)
			}
		}
	})
}
