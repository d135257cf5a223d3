// Package flags has what the mains of the interop programs share. It reads their command lines: what is wrong is named with
// its flag, its value and what is allowed, in one line.
package flags

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// ExitUsage is the exit status of a program whose flags are wrong.
const ExitUsage = 2

// Main runs a program with its arguments and ends the process with its status. On SIGINT or SIGTERM ctx ends; a second
// signal ends the process at once.
func Main(run func(ctx context.Context, args []string, out, errs io.Writer) (status int)) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // first: whoever sees that ctx has ended may send the second one
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Refuse says what is wrong with a program's flags, unless err is flag.ErrHelp, and returns the exit status.
func Refuse(program string, err error, errs io.Writer) (status int) {
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(errs, "%s: %v; see -h\n", program, err)
	return ExitUsage
}

// New returns an empty set for a program. Parse reads it.
func New(program string) *flag.FlagSet {
	fs := flag.NewFlagSet(program, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error says it all, and -h is Parse's
	return fs
}

// Parse reads args, which are flags only. For -h it writes usage and the flags to out and returns flag.ErrHelp.
func Parse(fs *flag.FlagSet, args []string, usage string, out io.Writer) error {
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		fs.SetOutput(out)
		fs.PrintDefaults()
		return flag.ErrHelp
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q, want flags only", fs.Arg(0))
	}
	return nil
}

// Int defines a flag for a whole number from min to max.
func Int(fs *flag.FlagSet, p *int, name string, value, min, max int, usage string) {
	*p = value
	fs.Var(&number{p, min, max}, name, usage)
}

// Duration defines a flag for a duration from min to max.
func Duration(fs *flag.FlagSet, p *time.Duration, name string, value, min, max time.Duration, usage string) {
	*p = value
	fs.Func(name, fmt.Sprintf("%s, %v to %v (default %v)", usage, min, max, value), func(s string) (err error) {
		if *p, err = time.ParseDuration(s); err != nil || *p < min || *p > max {
			return fmt.Errorf("want %v to %v", min, max)
		}
		return nil
	})
}

// Bool defines a flag that is false unless it is given.
func Bool(fs *flag.FlagSet, p *bool, name, usage string) {
	fs.BoolFunc(name, usage, func(s string) (err error) {
		if *p, err = strconv.ParseBool(s); err != nil {
			return errors.New("want true or false")
		}
		return nil
	})
}

// number implements flag.Value.
type number struct {
	value    *int
	min, max int
}

// String is "" for the zero value: package flag shows the defaults that differ from that.
func (n *number) String() string {
	if n.value == nil {
		return ""
	}
	return strconv.Itoa(*n.value)
}

// Set takes a number in decimal notation.
func (n *number) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil || v < n.min || v > n.max {
		return fmt.Errorf("want a whole number from %d to %d", n.min, n.max)
	}
	*n.value = v
	return nil
}
