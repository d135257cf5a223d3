package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// memory is the address space, in kB, that a test may have: some mutants never stop to allocate.
const memory = "8388608"

// verdict is what a run of tests says.
type verdict struct {
	unbuilt, failed, timeout bool
	why                      string
	took                     time.Duration
}

// builds reports whether the package of a mutant compiles.
func builds(ctx context.Context, s site) (bool, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	overlay, err := s.overlay(dir)
	if err != nil {
		return false, err
	}
	_, failed, err := quietly(ctx, ".", "go", "build", "-overlay", overlay, "./"+s.Dir)
	return !failed, errors.Join(err, ctx.Err())
}

// test builds the tests of a package and runs them. Vet stays off: it is no test.
func (r *runner) test(ctx context.Context, dir, overlay string) (verdict, error) {
	tmp, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(tmp)
	binary := filepath.Join(tmp, "mutant.test")
	build := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./" + dir}
	out, failed, err := quietly(ctx, ".", "go", build...)
	if failed || err != nil {
		return verdict{unbuilt: true, why: reason(out)}, errors.Join(err, ctx.Err())
	}
	if _, err := os.Stat(binary); err != nil {
		return verdict{why: "no tests"}, nil
	}
	args := []string{"-test.failfast", "-test.paniconexit0", "-test.timeout=10m"}
	if r.short {
		args = append(args, "-test.short")
	}
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	start := time.Now()
	out, failed, err = quietly(limited, dir, binary, args...)
	v := verdict{failed: failed, timeout: failed && limited.Err() != nil, took: time.Since(start)}
	switch {
	case v.timeout:
		v.why = "timeout"
	case failed:
		v.why = reason(out)
	}
	return v, errors.Join(err, ctx.Err())
}

// quietly runs a program with low priority and bounded memory, and reports whether it failed. When it or ctx ends, its
// children end, too. An error says that it could not be started.
func quietly(ctx context.Context, dir, program string, args ...string) (out string, failed bool, err error) {
	script := `ulimit -v ` + memory + ` 2>/dev/null; exec nice -n 10 "$0" "$@"`
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, program}, args...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	cmd.WaitDelay = 10 * time.Second
	var said head
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			err = nil
		}
		return "", true, err
	}
	failed = cmd.Wait() != nil
	_ = group() // children that outlived it
	return said.String(), failed, nil
}

// head keeps the first megabyte.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, 1<<20-h.Len()))])
	return len(p), nil
}

// reason returns the first line that says why tests failed, or the last one.
func reason(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, l := range lines {
		l = strings.TrimSpace(l)
		for _, sign := range []string{"--- FAIL: ", "panic: ", "fatal error: "} {
			if strings.HasPrefix(l, sign) {
				return l
			}
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
