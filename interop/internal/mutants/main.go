// Mutants changes the product in one place at a time and asks the tests of the changed package whether they notice. It
// draws such changes by a seed, with no eye on the tests, and runs them from the module's root:
//
//	go run ./interop/internal/mutants draw -seed 7 -n 300 >list.jsonl
//	go run ./interop/internal/mutants run -list list.jsonl -out results.jsonl
//	grep '"result":"killed"' results.jsonl >killed.jsonl
//
// A file of results is a list, too: the last file shows later, with run, whether each mutant that died dies again. A
// mutant is named by the text around it, so it is found again after its function has moved within its package or to one
// below. A run that was stopped goes on where it stood.
//
// Nothing is written into the tree: the go command reads a changed file through -overlay.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want draw or run, and flags")
	}
	switch args[0] {
	case "draw":
		return drawCommand(ctx, args[1:])
	case "run":
		return runCommand(ctx, args[1:])
	}
	return fmt.Errorf("unknown command %q, want draw or run", args[0])
}

func drawCommand(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("draw", flag.ExitOnError)
	seed := set.Uint64("seed", 7, "what is drawn follows from it")
	n := set.Int("n", 300, "how many mutants to draw")
	set.Parse(args)
	t, err := readTree(".")
	if err != nil {
		return err
	}
	drawn, err := t.draw(*seed, *n, func(s site) (bool, error) { return builds(ctx, s) })
	if err != nil {
		return err
	}
	enc := encoder(os.Stdout)
	for _, s := range drawn {
		if err := enc.Encode(s.mutant); err != nil {
			return err
		}
	}
	return nil
}

func runCommand(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("run", flag.ExitOnError)
	list := set.String("list", "", "`file` of mutants to run")
	out := set.String("out", "", "`file` of results, which is added to; what stands there is not run again")
	jobs := set.Int("j", 1, "how many mutants to run at a time")
	r := runner{}
	set.BoolVar(&r.short, "short", false, "run the tests with -short")
	set.DurationVar(&r.timeout, "timeout", 3*time.Minute, "a mutant whose tests take longer is killed")
	set.Parse(args)
	if *list == "" || *out == "" || *jobs < 1 {
		return errors.New("run: want -list, -out and a positive -j")
	}
	mutants, err := readLines[mutant](*list)
	if err != nil {
		return err
	}
	before, err := readLines[result](*out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r.tree, err = readTree("."); err != nil {
		return err
	}
	file, err := os.OpenFile(*out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	r.results = encoder(io.MultiWriter(file, os.Stdout))
	all, err := r.run(ctx, mutants, before, *jobs)
	fmt.Print(totals(all, len(mutants)))
	return errors.Join(err, file.Close())
}

// encoder writes <, > and & as they are: a list is for reading.
func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

func readLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []T
	for dec := json.NewDecoder(bufio.NewReader(f)); ; {
		var v T
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, v)
	}
}
