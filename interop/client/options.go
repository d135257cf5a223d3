package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/testdata"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const (
	defaultHost = "localhost"
	defaultPort = "10000"
	maxSeconds  = 24 * 60 * 60
)

// options are what the flags say.
type options struct {
	request // but for the case and, when they are the client's own, the servers
	cases   []testCase
	own     int // servers to start; 0: they are there
}

// rawFlags are flags that need another look once all are read.
type rawFlags struct {
	cases, hosts, ports string
	own                 int
	useTLS, testCA      bool
	caFile, certName    string
	given               map[string]bool // by name
}

func parse(ctx context.Context, args []string, out io.Writer, cases []testCase) (*options, error) {
	fs := flags.New("client")
	o, w := &options{}, &rawFlags{given: map[string]bool{}}
	w.define(fs, cases)
	fs.StringVar(&o.ServiceConfig, "service_config_json", leastconntest.DefaultServiceConfig, "service config as `JSON`; it must select least_conn")
	flags.Int(fs, &o.TimeoutSeconds, "case_timeout_seconds", 20, 1, maxSeconds, "how many `seconds` a case may take, other than a soak")
	o.Soak.define(fs)
	if err := flags.Parse(fs, args, usage, out); err != nil {
		return nil, err
	}
	fs.Visit(func(f *flag.Flag) { w.given[f.Name] = true })
	var err error
	if o.cases, err = choose(cases, w.cases); err != nil {
		return nil, err
	}
	if err := o.Soak.check(); err != nil {
		return nil, err
	}
	if o.Servers, o.own, err = w.servers(ctx); err != nil {
		return nil, err
	}
	if o.TLS, err = w.security(); err != nil {
		return nil, err
	}
	return o, o.checkServiceConfig()
}

func (w *rawFlags) define(fs *flag.FlagSet, cases []testCase) {
	fs.StringVar(&w.cases, "test_case", "all", "`cases` to run, separated by commas; all:\n"+names(cases))
	fs.StringVar(&w.hosts, "server_host", "", "`hosts` of the servers, separated by commas, each with a port of its own or with those of --server_port;\n"+
		"default: "+defaultHost+" if there is a --server_port, else the servers are the client's own")
	fs.StringVar(&w.ports, "server_port", defaultPort, "`ports` of the servers, separated by commas")
	flags.Int(fs, &w.own, "servers", 3, 1, 1000, "`number` of the client's own servers")
	flags.Bool(fs, &w.useTLS, "use_tls", "speak TLS")
	flags.Bool(fs, &w.testCA, "use_test_ca", "trust --ca_file or, without one, the authority of gRPC's own interop servers")
	fs.StringVar(&w.caFile, "ca_file", "", "`file` in PEM with the authorities to trust instead of the system's")
	fs.StringVar(&w.certName, "server_host_override", "", "`name` that the servers' certificates must have, instead of their hosts")
}

// servers returns the servers that are there, or how many to start.
func (w *rawFlags) servers(ctx context.Context) (there []server, own int, err error) {
	switch theirs := w.given["server_host"] || w.given["server_port"]; {
	case theirs && w.given["servers"]:
		return nil, 0, fmt.Errorf("--servers is %d: it is for the client's own servers, want none with --server_host and --server_port", w.own)
	case theirs:
		if !w.given["server_host"] {
			w.hosts = defaultHost
		}
		there, err = lookUp(ctx, w.hosts, w.ports)
		return there, 0, err
	case w.testCA || w.caFile != "":
		return nil, 0, fmt.Errorf("--use_test_ca is %t and --ca_file is %q: the client trusts its own servers, want none without --server_host and --server_port", w.testCA, w.caFile)
	}
	return nil, w.own, nil
}

// checkServiceConfig has gRPC read it.
func (o *options) checkServiceConfig() error {
	if o.ServiceConfig == "" {
		return errors.New(`--service_config_json is "", want a service config that selects least_conn`)
	}
	probe := request{ServiceConfig: o.ServiceConfig, Servers: []server{{Name: "none"}}}
	ch, err := probe.dial()
	if err != nil {
		return fmt.Errorf("--service_config_json is %s, want a service config that selects least_conn: %w", o.ServiceConfig, err)
	}
	return ch.Close()
}

// security is what a client has to know for TLS. A nil one is plaintext.
type security struct {
	CA         []byte // in PEM; none: the system's
	ServerName string // that certificates must have; "": the host that each server was given by
}

// security takes up the flags that are about TLS.
func (w *rawFlags) security() (*security, error) {
	switch {
	case !w.useTLS && (w.testCA || w.caFile != "" || w.certName != ""):
		return nil, fmt.Errorf("--use_test_ca is %t, --ca_file is %q and --server_host_override is %q: want none of them without --use_tls", w.testCA, w.caFile, w.certName)
	case !w.useTLS:
		return nil, nil
	case w.testCA && w.caFile == "":
		w.caFile = testdata.Path("ca.pem")
	}
	s := &security{ServerName: w.certName}
	if w.caFile == "" {
		return s, nil
	}
	var err error
	if s.CA, err = os.ReadFile(w.caFile); err == nil {
		_, err = s.dialOptions()
	}
	if err != nil {
		return nil, fmt.Errorf("--ca_file is %q, want a file with certificates in PEM: %w", w.caFile, err)
	}
	return s, nil
}

// dialOptions are what makes a channel secure, or plaintext. The name is set as the channel's authority, which goes before
// the names that servers were given by.
func (s *security) dialOptions() ([]grpc.DialOption, error) {
	if s == nil {
		return []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, nil
	}
	config := &tls.Config{}
	if s.CA != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(s.CA) {
			return nil, errors.New("there is no certificate in it")
		}
	}
	opts := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}
	if s.ServerName != "" {
		opts = append(opts, grpc.WithAuthority(s.ServerName))
	}
	return opts, nil
}

func (s *security) String() string {
	switch {
	case s == nil:
		return "plaintext"
	case s.ServerName != "":
		return "TLS as " + s.ServerName
	}
	return "TLS"
}
