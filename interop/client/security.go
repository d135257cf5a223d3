package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/testdata"
)

// security is what a client has to know for TLS. A nil one is plaintext.
type security struct {
	CA         []byte // in PEM; none: the system's
	ServerName string // that certificates must have; "": the host that each server was given by
}

// security takes up the flags that are about TLS.
func (w *words) security() (*security, error) {
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
