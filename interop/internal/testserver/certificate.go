package testserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// validity is how long a certificate holds, from an hour before it is made.
const validity = 30 * 24 * time.Hour

// names are what every certificate is for: loopback, and the names that gRPC's interop programs override with.
var names = []string{"localhost", "127.0.0.1", "::1", "*.test.google.fr"}

// Certificate is a server certificate that was made at run time. It holds for 30 days.
type Certificate struct {
	TLS tls.Certificate
	CA  []byte // the authority that signed it and nothing else, in PEM
}

// NewCertificate makes a certificate for loopback, *.test.google.fr and hosts, which are names or IP addresses. The key of
// its authority is forgotten.
func NewCertificate(hosts ...string) (Certificate, error) {
	fail := func(err error) (Certificate, error) { return Certificate{}, fmt.Errorf("make a certificate: %w", err) }
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	ca := template("interop test authority", 1)
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return fail(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	leaf := template("interop test server", 2)
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range slices.Concat(names, hosts) {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return fail(err)
	}
	return Certificate{
		TLS: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		CA:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
	}, nil
}

func template(name string, serial int64) *x509.Certificate {
	begin := time.Now().Add(-time.Hour)
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    begin,
		NotAfter:     begin.Add(validity),
	}
}
