// Server serves gRPC's interop test service, one server or several, until it is told to end.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
	"github.com/leastconn/grpc-leastconn/interop/internal/testserver"
)

const usage = `Server serves grpc.testing.TestService for gRPC's interop cases, as the clients of all languages make them.

It prints a line for each server when all are ready:

  listening addr=127.0.0.1:10000

On SIGINT or SIGTERM it sends GOAWAY, lets the RPCs that are under way end within --grace_seconds and ends with status 0; a
second signal ends it at once.

Example, three servers with a certificate of their own and the client:

  go run ./interop/server --servers 3 --port 21081 --use_tls --write_ca_file ca.pem &
  go run ./interop/client --server_port 21081,21082,21083 --use_tls --ca_file ca.pem

Exit status: 0 when ended by a signal, 1 if it could not serve, 2 if the flags are wrong.

Flags:
`

// Exit statuses, as usage describes them.
const (
	exitEnded = iota
	exitFailed
)

func main() { flags.Main(run) }

// run serves until ctx ends.
func run(ctx context.Context, args []string, out, errs io.Writer) (status int) {
	o, err := parse(args, out)
	if err != nil {
		return flags.Refuse("server", err, errs)
	}
	if err := serve(ctx, o, out); err != nil {
		fmt.Fprintln(errs, "server:", err)
		return exitFailed
	}
	return exitEnded
}

func serve(ctx context.Context, o *options, out io.Writer) error {
	if o.caFile != "" {
		if err := os.WriteFile(o.caFile, o.ca, 0o644); err != nil {
			return fmt.Errorf("--write_ca_file: %w", err)
		}
	}
	servers, err := testserver.Start(o.Options)
	if err != nil {
		return err
	}
	for _, addr := range servers.Addrs() {
		fmt.Fprintf(out, "listening addr=%s\n", addr)
	}
	<-ctx.Done()
	servers.Close(o.grace()) // the next signal ends the process
	return nil
}

const maxPort = 65535

// options are what the flags say.
type options struct {
	testserver.Options
	graceSeconds      int
	useTLS            bool
	certFile, keyFile string
	caFile            string // where to write ca to; "": nowhere
	ca                []byte // in PEM
}

func parse(args []string, out io.Writer) (*options, error) {
	fs := flags.New("server")
	o := &options{}
	fs.StringVar(&o.Host, "host", "127.0.0.1", "`address` or name to listen on")
	flags.Int(fs, &o.Port, "port", 10000, 0, maxPort, "`port` of the first server, those after it have the next ones; 0: a free one for each")
	flags.Int(fs, &o.Count, "servers", 1, 1, 1000, "`number` of servers")
	flags.Int(fs, &o.graceSeconds, "grace_seconds", 5, 0, 3600, "how many `seconds` RPCs may go on after SIGTERM")
	flags.Bool(fs, &o.useTLS, "use_tls", "speak TLS, with a certificate made now unless there are files")
	fs.StringVar(&o.certFile, "tls_cert_file", "", "certificate `file` in PEM, with --tls_key_file")
	fs.StringVar(&o.keyFile, "tls_key_file", "", "`file` with the certificate's key in PEM")
	fs.StringVar(&o.caFile, "write_ca_file", "", "`file` to write the authority of a certificate made now to, in PEM")
	if err := flags.Parse(fs, args, usage, out); err != nil {
		return nil, err
	}
	switch last := o.Port + o.Count - 1; {
	case o.Host == "":
		return nil, errors.New(`--host is "", want an address or a name of this machine`)
	case o.Port != 0 && last > maxPort:
		return nil, fmt.Errorf("--port is %d and --servers is %d: the last port would be %d, want at most %d", o.Port, o.Count, last, maxPort)
	}
	return o, o.secure()
}

func (o *options) grace() time.Duration { return time.Duration(o.graceSeconds) * time.Second }

// secure finds or makes the certificate.
func (o *options) secure() error {
	switch {
	case !o.useTLS && (o.certFile != "" || o.keyFile != "" || o.caFile != ""):
		return fmt.Errorf("--tls_cert_file is %q, --tls_key_file is %q and --write_ca_file is %q: want none of them without --use_tls", o.certFile, o.keyFile, o.caFile)
	case !o.useTLS:
		return nil
	case o.certFile == "" && o.keyFile == "":
		made, err := testserver.NewCertificate(o.Host)
		o.Certificate, o.ca = &made.TLS, made.CA
		return err
	case o.caFile != "":
		return fmt.Errorf("--write_ca_file is %q: want none with --tls_cert_file, whose authority is not known", o.caFile)
	}
	pair, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	if err != nil {
		return fmt.Errorf("--tls_cert_file is %q and --tls_key_file is %q, want both, in PEM and of one pair: %w", o.certFile, o.keyFile, err)
	}
	o.Certificate = &pair
	return nil
}
