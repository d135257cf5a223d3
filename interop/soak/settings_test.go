package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	set, err := parse(strings.Fields("-duration 10m -seed 18446744073709551615 -nodes 3 -round 1s -v"), nil)
	require.NoError(t, err)
	assert.Equal(t, settings{10 * time.Minute, 1<<64 - 1, 3, time.Second, true}, set)
	assert.Equal(t, "go run ./interop/soak -seed 18446744073709551615 -nodes 3 -round 1s -duration 10m0s", set.command())
}

func TestDefaults(t *testing.T) {
	one, err := parse(nil, nil)
	require.NoError(t, err)
	other, err := parse([]string{"-seed=0"}, nil)
	require.NoError(t, err)
	assert.NotZero(t, one.seed)
	assert.NotEqual(t, one.seed, other.seed, "each run draws its own")
	one.seed = 0
	assert.Equal(t, defaults, one)
}

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-duration 0s":                `invalid value "0s" for flag -duration: want 1s to 24h0m0s`,
		"-duration 25h":               `invalid value "25h" for flag -duration: want 1s to 24h0m0s`,
		"-duration long":              `invalid value "long" for flag -duration: want 1s to 24h0m0s`,
		"-round 10ms":                 `invalid value "10ms" for flag -round: want 200ms to 1m0s`,
		"-nodes 1":                    `invalid value "1" for flag -nodes: want 2 to 32`,
		"-nodes 33":                   `invalid value "33" for flag -nodes: want 2 to 32`,
		"-nodes many":                 `invalid value "many" for flag -nodes: want 2 to 32`,
		"-seed -1":                    `invalid value "-1" for flag -seed: want 0 to 2^64-1`,
		"-seed 18446744073709551616":  `invalid value "18446744073709551616" for flag -seed: want 0 to 2^64-1`,
		"-v=perhaps":                  `invalid boolean value "perhaps" for -v`,
		"-unknown":                    "flag provided but not defined: -unknown",
		"-v now":                      `unexpected argument "now"`,
		"-duration 1s -seed 4 -nodes": "flag needs an argument: -nodes",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errs bytes.Buffer
			assert.Equal(t, exitFlags, run(t.Context(), strings.Fields(args), &out, &errs))
			assert.Contains(t, errs.String(), "soak: "+want)
			assert.Empty(t, out.String())
		})
	}
}

func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	assert.Equal(t, exitHeld, run(t.Context(), []string{"-h"}, &out, &errs))
	for _, want := range []string{"Exit status", "-duration", "(default 1m0s)", "-seed number", "-nodes number", "-round", "-v"} {
		assert.Contains(t, errs.String(), want)
	}
}
