package integration

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// terminal is a tmux server of the test's own, with one session.
type terminal struct {
	*testing.T
	program string
	env     []string
}

// startTerminal runs a command in a terminal of 24 lines and 80 columns. The
// terminal stays when it has ended, for as long as the test runs, and shows its
// exit status.
func startTerminal(t *testing.T, command ...string) terminal {
	t.Helper()
	program, err := exec.LookPath("tmux")
	require.NoError(t, err, "this test needs tmux: apt-get install tmux")
	// Its socket has to have a short path.
	dir, err := os.MkdirTemp("", "tmux")
	require.NoError(t, err)
	term := terminal{t, program, append(os.Environ(), "TMUX=", "TMUX_TMPDIR="+dir, "LC_ALL=C.UTF-8")}
	const shell = `trap : INT; "$0" "$@"; echo "ended with status $?"; exec cat`
	term.tmux(append([]string{"new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", shell}, command...)...)
	t.Cleanup(func() {
		term.tmux("kill-server")
		require.NoError(t, os.RemoveAll(dir))
	})
	return term
}

// tmux runs one of tmux's own commands.
func (t terminal) tmux(args ...string) string {
	t.Helper()
	cmd := exec.Command(t.program, append([]string{"-u", "-L", "watch", "-f", "/dev/null"}, args...)...)
	cmd.Env = t.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func (t terminal) screen() string { return t.tmux("capture-pane", "-p") }

// modes are those that a program has to leave as they were.
func (t terminal) modes() string {
	t.Helper()
	return t.tmux("display-message", "-p", "alternate #{alternate_on}, cursor #{cursor_flag}, wrap #{wrap_flag}")
}

// see waits for a screen that is as it should be, and returns it.
func (t terminal) see(what string, condition func(screen string) bool) (screen string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := leastconntest.WaitFor(ctx, what, func() bool {
		screen = t.screen()
		return condition(screen)
	})
	require.NoError(t, err, "%s", screen)
	return screen
}

// watched is a row of the table: server, in flight, picks; a full one has no score.
var watched = regexp.MustCompile(`(?m)^([abc]) +127\.0\.0\.1:\d+ +ready +1 +(\d+) +(\d+) +(?:▸?\d+|-) +[█▏▎▍▌▋▊▉]+ *$`)

func inFlightOn(screen string) map[string]int {
	by := map[string]int{}
	for _, row := range watched.FindAllStringSubmatch(screen, -1) {
		by[row[1]], _ = strconv.Atoi(row[2])
	}
	return by
}

// In a real terminal the table changes in place while the third server becomes
// level, and its last state stays when the program has ended. Servers that are
// full keep what is seen from passing.
func TestWatchInATerminal(t *testing.T) {
	nodes, file := startNodes(t, "a", "b", "c"), newNodeFile(t)
	file.list(4, nodes[:2]...)
	term := startTerminal(t, buildProgram(t, "../interop/scenarios"), "-watch", "-every", "50ms", "-target", file.target())
	holds := func(want map[string]int) func(string) bool {
		return func(screen string) bool { return maps.Equal(inFlightOn(screen), want) }
	}
	term.see("two servers, level", holds(map[string]int{"a": 4, "b": 4}))
	file.list(2, nodes...)
	term.see("the third begins", holds(map[string]int{"a": 4, "b": 4, "c": 2}))
	file.list(4, nodes...)
	screen := term.see("the third is level", holds(map[string]int{"a": 4, "b": 4, "c": 4}))
	require.Equal(t, 0, strings.LastIndex(screen, "least_conn in this process"), "one frame, at the top: %s", screen)
	require.Equal(t, "alternate 1, cursor 0, wrap 0\n", term.modes())

	term.tmux("send-keys", "C-c")
	screen = term.see("the program has ended", func(screen string) bool { return strings.Contains(screen, "ended with status") })
	require.Contains(t, screen, "ended with status 0\n")
	require.Equal(t, "alternate 0, cursor 1, wrap 1\n", term.modes())
	require.Contains(t, inFlightOn(screen), "c", screen)
}

// resize gives the terminal another size.
func (t terminal) resize(columns, lines int) {
	t.Helper()
	t.tmux("resize-window", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(lines))
}

// What a terminal has no room for is left out as soon as it is made smaller, and is back when it is
// large again: events first, then the legend, then columns. Each server keeps its row.
func TestWatchFollowsTheTerminal(t *testing.T) {
	term := startTerminal(t, buildProgram(t, "../interop/scenarios"), "-watch", "-every", "50ms")
	const header, legend, event, weight, state = "endpoint", "penalty", "new session", "weight  in", "ready"
	parts := []string{header, legend, event, weight, state, "█"}
	for _, tt := range []struct {
		columns, lines int
		want           []string
	}{
		{80, 24, parts},
		{160, 40, parts},
		{100, 11, []string{header, legend, weight, state, "█"}},
		{100, 9, []string{header, weight, state, "█"}},
		{60, 24, []string{header, legend, event, state, "█"}},
		{38, 12, []string{header, legend, "█"}},
		{24, 6, []string{header}},
		{80, 24, parts},
	} {
		term.resize(tt.columns, tt.lines)
		endpoint := regexp.MustCompile(`(?m)^.*\d:\d+ .*$`)
		term.see("it fits", func(screen string) bool {
			var got []string
			for _, part := range parts {
				if strings.Contains(screen, part) {
					got = append(got, part)
				}
			}
			rows := endpoint.FindAllString(screen, -1)
			return slices.Equal(got, tt.want) && len(rows) == 3 && strings.Count(screen, "spread") <= 1
		})
		screen := term.screen()
		for _, line := range strings.Split(screen, "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, " ")), tt.columns, screen)
		}
	}
}
