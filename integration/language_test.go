package integration

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// language is what a server that is not Go is written in.
type language struct {
	command []string
	needs   string     // how to get what a missing one lacks
	threw   codes.Code // what its gRPC makes of a handler that throws
}

const buildNeeds = "apt-get install make g++ pkg-config protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libgrpc++-dev " +
	"default-jdk-headless protobuf-compiler-grpc-java-plugin libgrpc-java libprotobuf-java libnetty-java libperfmark-java libguava-java " +
	"libgeronimo-annotation-1.3-spec-java"

var (
	python = kind{name: "python", language: &language{
		// Debian's own: another one, such as pyenv's, has no Debian packages.
		command: []string{"/usr/bin/python3", "peers/python/server.py"},
		needs:   "apt-get install python3-grpcio python3-protobuf",
		threw:   codes.Unknown,
	}}
	cpp = kind{name: "cpp", language: &language{
		command: []string{"peers/build/cpp/server"},
		needs:   buildNeeds,
		threw:   codes.Unimplemented, // of a handler that makes a reactor
	}}
	node = kind{name: "node", language: &language{
		command: []string{"node", "peers/node/server.js"},
		needs:   "apt-get install nodejs npm (Node 20 or newer), then npm ci --prefix integration/peers/node",
		threw:   codes.Unknown,
	}}
	java = kind{name: "java", language: &language{ // in the tests of reports alone
		command: []string{"java", "@peers/build/java/args"},
		needs:   buildNeeds,
	}}
)

// buildPeers builds what is out of date of the servers, and says what make said
// to that.
var buildPeers = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("make", "-C", "peers", "-j2").CombinedOutput()
	return string(out), err
})

// built returns the command that starts a server of the language.
func (l *language) built(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	out, err := buildPeers()
	require.NoError(t, err, "the servers of other languages need %s; make said:\n%s", buildNeeds, out)
	c := exec.Command(lookup(t, l.command[0], l.needs), append(l.command[1:len(l.command):len(l.command)], flags...)...)
	c.Env = []string{"PATH=" + os.Getenv("PATH")} // and no settings of gRPC
	return c
}

// peer is a server of another language.
type peer struct {
	*testing.T
	kind  kind
	addr  string
	flags []string

	// Of the process that runs now or ran last.
	process  *process
	orders   io.Writer
	answers  int // that were read
	draining bool
}

func startPeer(t *testing.T, k kind, addr string, flags ...string) *peer {
	t.Helper()
	p := &peer{T: t, kind: k, addr: addr, flags: flags}
	p.restart()
	return p
}

// restart starts another process on the peer's address and waits until it
// listens.
func (p *peer) restart() {
	p.Helper()
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(p, err)
	c := p.kind.language.built(p.T, append([]string{"--port", port, "--name", p.kind.name}, p.flags...)...)
	p.orders, err = c.StdinPipe()
	require.NoError(p, err)
	p.process, p.answers, p.draining = startProcess(p.T, c, syscall.SIGKILL), 0, false
	require.Equal(p, "listening "+port, p.answer())
}

// answer returns the next line that the process says.
func (p *peer) answer() (line string) {
	p.Helper()
	p.process.until("an answer", func() (ok bool) {
		line, ok = p.process.out.line(p.answers)
		return ok
	})
	p.answers++
	return line
}

// obey has the process do something and returns how many RPCs it handles then.
func (p *peer) obey(order string) (live int) {
	p.Helper()
	_, err := fmt.Fprintln(p.orders, order)
	require.NoError(p, err)
	_, err = fmt.Sscanf(p.answer(), "live %d", &live)
	require.NoError(p, err)
	return live
}

func (p *peer) Addr() string { return p.addr }
func (p *peer) Name() string { return p.kind.name }

func (p *peer) Live() int {
	if p.process.ended() {
		return 0
	}
	return p.obey("live")
}

func (p *peer) holdUnary() {} // as the client asks

func (p *peer) endHeld(code codes.Code) {
	order := "end " + strconv.Itoa(int(code))
	if !p.draining {
		p.obey(order)
		return
	}
	_, err := fmt.Fprintln(p.orders, order) // with which it may have no time to answer
	require.NoError(p, err)
}

func (p *peer) drain() {
	p.Helper()
	p.draining = true
	p.process.signal(syscall.SIGTERM)
}

func (p *peer) waitDrained() {
	p.Helper()
	p.process.waitEnded()
	require.True(p, p.process.cmd.ProcessState.Success(), "%v: %s", p.process.cmd.ProcessState, &p.process.errors)
}

func (p *peer) crash() {
	p.Helper()
	p.process.end(syscall.SIGKILL)
}

// A wrong flag is named, with its value and what is allowed.
func TestPeersRefuseBadFlags(t *testing.T) {
	for _, k := range languages {
		for flag, want := range map[string]string{
			"--port=65536":    `--port.*"65536".*0 to 65535`,
			"--port=x":        `--port.*"x".*0 to 65535`,
			"--max-age-ms=-1": `--max-age-ms.*"-1".*0 to 86400000`,
			"--name=":         `--name.*"".*a name is needed`,
			"--nonesuch=1":    `--nonesuch`,
		} {
			out, err := k.language.built(t, flag).CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", out)
			require.Equal(t, 2, exit.ExitCode(), "%s", out)
			require.Regexp(t, want, string(out))
		}
	}
}
