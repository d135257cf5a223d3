package flags_test

import (
	"bytes"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// parse reads args into a number from 1 to 5 that is 3 by default, a duration of 1 to 2 s and a switch.
func parse(args ...string) (number int, on bool, out string, err error) {
	fs := flags.New("program")
	var pause time.Duration
	flags.Duration(fs, &pause, "pause", time.Second, time.Second, 2*time.Second, "a pause")
	flags.Int(fs, &number, "number", 3, 1, 5, "a `number`")
	flags.Bool(fs, &on, "on", "a switch")
	var buf bytes.Buffer
	err = flags.Parse(fs, args, "Program does.\n", &buf)
	return number, on, buf.String(), err
}

func TestValues(t *testing.T) {
	number, on, _, err := parse()
	require.NoError(t, err)
	require.Equal(t, 3, number)
	require.False(t, on)
	number, on, _, err = parse("--number=5", "-on")
	require.NoError(t, err)
	require.Equal(t, 5, number)
	require.True(t, on)
	_, on, _, err = parse("--on", "--on=false")
	require.NoError(t, err)
	require.False(t, on)
}

func TestErrors(t *testing.T) {
	const want = "want a whole number from 1 to 5"
	for args, text := range map[string]string{
		"-number=0":      `invalid value "0" for flag -number: ` + want,
		"--number=6":     `invalid value "6" for flag -number: ` + want,
		"--number=x":     `invalid value "x" for flag -number: ` + want,
		"--number=1.5":   `invalid value "1.5" for flag -number: ` + want,
		"--pause=3s":     `invalid value "3s" for flag -pause: want 1s to 2s`,
		"--pause=999ms":  `invalid value "999ms" for flag -pause: want 1s to 2s`,
		"--pause=1":      `invalid value "1" for flag -pause: want 1s to 2s`,
		"--on=perhaps":   `invalid boolean value "perhaps" for -on: want true or false`,
		"--no_such_flag": "flag provided but not defined: -no_such_flag",
		"word":           `unexpected argument "word", want flags only`,
	} {
		_, _, out, err := parse(args)
		require.EqualError(t, err, text)
		require.Empty(t, out)
		var errs bytes.Buffer
		require.Equal(t, flags.ExitUsage, flags.Refuse("program", err, &errs))
		require.Equal(t, "program: "+text+"; see -h\n", errs.String())
	}
}

func TestHelp(t *testing.T) {
	_, _, out, err := parse("-h")
	require.ErrorIs(t, err, flag.ErrHelp)
	require.Zero(t, flags.Refuse("program", err, nil))
	require.Contains(t, out, "Program does.\n")
	require.Contains(t, out, "-number number")
	require.Contains(t, out, "(default 3)")
}
