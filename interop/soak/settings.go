package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

// settings are what the flags say.
type settings struct {
	duration time.Duration // how long to begin new rounds
	seed     uint64        // of the plan, never 0
	nodes    int
	round    time.Duration // between two quiet points
	verbose  bool          // print every fault
}

// defaults are the settings without flags; the seed is drawn.
var defaults = settings{duration: time.Minute, nodes: 6, round: 4 * time.Second}

// parse reads the flags. What is wrong with them is in the error, but for flag.ErrHelp, after which the usage has been
// written to errs.
func parse(args []string, errs io.Writer) (settings, error) {
	set := defaults
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	duration(flags, &set.duration, "duration", "how long to begin new rounds", time.Second, 24*time.Hour)
	duration(flags, &set.round, "round", "time between two quiet points", 200*time.Millisecond, time.Minute)
	nodes := fmt.Sprintf("2 to %d", maxNodes)
	flags.Func("nodes", "`number` of servers, "+nodes+" (default 6)", func(s string) (err error) {
		if set.nodes, err = strconv.Atoi(s); err != nil || set.nodes < 2 || set.nodes > maxNodes {
			return errors.New("want " + nodes)
		}
		return nil
	})
	flags.Func("seed", "`number` that the plan follows from, 0 to 2^64-1; 0: one is drawn and printed", func(s string) (err error) {
		if set.seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			return errors.New("want 0 to 2^64-1")
		}
		return nil
	})
	flags.BoolVar(&set.verbose, "v", false, "print every fault as it is injected")
	if err := flags.Parse(args); err != nil {
		if err == flag.ErrHelp {
			fmt.Fprint(errs, usage)
			flags.SetOutput(errs)
			flags.PrintDefaults()
		}
		return set, err
	}
	if flags.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q; see -h", flags.Arg(0))
	}
	for set.seed == 0 {
		set.seed = rand.Uint64()
	}
	return set, nil
}

const maxNodes = 32

// duration adds a flag for a duration from least to most. Its default is the value that it has.
func duration(flags *flag.FlagSet, to *time.Duration, name, usage string, least, most time.Duration) {
	allowed := fmt.Sprintf("%v to %v", least, most)
	flags.Func(name, fmt.Sprintf("%s, %s (default %v)", usage, allowed, *to), func(s string) (err error) {
		if *to, err = time.ParseDuration(s); err != nil || *to < least || *to > most {
			return errors.New("want " + allowed)
		}
		return nil
	})
}

// command is the command line that replays the run.
func (s settings) command() string {
	return fmt.Sprintf("go run ./interop/soak -seed %d -nodes %d -round %v -duration %v", s.seed, s.nodes, s.round, s.duration)
}
