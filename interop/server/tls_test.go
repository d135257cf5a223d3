package main

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"

	"github.com/leastconn/grpc-leastconn/interop/internal/testserver"
)

// Without files the certificate is made at run time, and whoever has its authority trusts it.
func TestTLS(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	p := start(t, 2, "--servers", "2", "--use_tls", "--write_ca_file", ca)
	for _, addr := range p.addrs {
		for _, name := range []string{"", "localhost", "foo.test.google.fr"} {
			creds, err := credentials.NewClientTLSFromFile(ca, name)
			require.NoError(t, err)
			require.NoError(t, call(t, dial(t, addr, creds)), name)
		}
		wrong, err := credentials.NewClientTLSFromFile(ca, "other.example")
		require.NoError(t, err)
		require.ErrorContains(t, call(t, dial(t, addr, wrong)), "other.example")
		none := credentials.NewClientTLSFromCert(x509.NewCertPool(), "")
		require.ErrorContains(t, call(t, dial(t, addr, none)), "unknown authority")
	}
	p.signal(t)
	require.NoError(t, p.Wait())
}

func TestTLSFiles(t *testing.T) {
	c, err := testserver.NewCertificate("files.example")
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(c.TLS.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	p := start(t, 1, "--use_tls",
		"--tls_cert_file", write("cert.pem", "CERTIFICATE", c.TLS.Certificate[0]),
		"--tls_key_file", write("key.pem", "PRIVATE KEY", key))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(c.CA))
	require.NoError(t, call(t, dial(t, p.addrs[0], credentials.NewClientTLSFromCert(roots, "files.example"))))
	p.signal(t)
	require.NoError(t, p.Wait())
}
