package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
	"github.com/leastconn/grpc-leastconn/interop/internal/testserver"
)

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
