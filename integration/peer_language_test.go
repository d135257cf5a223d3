package integration

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// language is what a server that is not Go is written in.
type language struct {
	name    string
	command []string
	needs   string     // how to get what a missing one lacks
	threw   codes.Code // what its gRPC makes of a handler that throws
}

var languages = []language{
	{
		name: "python",
		// Debian's own: another one, such as pyenv's, has no Debian packages.
		command: []string{"/usr/bin/python3", "peers/python/server.py"},
		needs:   "apt-get install python3-grpcio python3-protobuf",
		threw:   codes.Unknown,
	},
	{
		name:    "cpp",
		command: []string{"peers/build/cpp/server"},
		needs:   buildNeeds,
		threw:   codes.Unimplemented, // of a handler that makes a reactor
	},
	{
		name:    "node",
		command: []string{"node", "peers/node/server.js"},
		needs:   "apt-get install nodejs npm (Node 20 or newer), then npm ci --prefix integration/peers/node",
		threw:   codes.Unknown,
	},
}

const buildNeeds = "apt-get install make g++ pkg-config protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libgrpc++-dev"

// buildPeers builds what is out of date of the servers, and says what make said
// to that.
var buildPeers = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("make", "-C", "peers", "-j2").CombinedOutput()
	return string(out), err
})

// eachLanguage runs a test once for each language.
func eachLanguage(t *testing.T, test func(*testing.T, language)) {
	for _, lang := range languages {
		t.Run(lang.name, func(t *testing.T) { test(t, lang) })
	}
}

// built returns the command that starts a server of the language.
func (lang language) built(t *testing.T) *exec.Cmd {
	t.Helper()
	out, err := buildPeers()
	require.NoError(t, err, "the servers of other languages need %s; make said:\n%s", buildNeeds, out)
	program, err := exec.LookPath(lang.command[0])
	require.NoError(t, err, "the %s server needs %s", lang.name, lang.needs)
	return exec.Command(program, lang.command[1:]...)
}
