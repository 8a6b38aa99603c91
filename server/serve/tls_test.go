package serve_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/serve"
)

// certify writes a certificate of its own making, with a number.
func certify(t *testing.T, dir string, number int64) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "pawl"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(time.Duration(number) * time.Second)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, key, pool
}

func TestU5_TLSIsServedAndRenewed(t *testing.T) {
	people := newPeople(t, auth.Viewer)
	dir := t.TempDir()
	cert, key, pool := certify(t, dir, 1)
	s := start(t, people.file, func(c *serve.Config) { c.TLSCert, c.TLSKey = cert, key })
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatal(s.url)
	}
	trust := func(pool *x509.CertPool) {
		s.client.CloseIdleConnections()
		s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	}
	number := func() int64 {
		t.Helper()
		answer, text := s.do("GET", "/api/v1/jobs", "", people.as(auth.Viewer)...)
		if answer.StatusCode != 200 || answer.ProtoMajor != 2 {
			t.Fatalf("%s %s: %s", answer.Proto, answer.Status, text)
		}
		return answer.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	trust(pool)
	if n := number(); n != 1 {
		t.Errorf("certificate %d", n)
	}
	if cookie, _ := s.login(people.secrets["viewer"]); !cookie.Secure {
		t.Error("the cookie goes without TLS, too")
	}
	_, _, pool = certify(t, dir, 2)
	trust(pool)
	if n := number(); n != 2 {
		t.Errorf("certificate %d after it was renewed", n)
	}
	// Half of a renewal leaves what there was.
	if err := os.WriteFile(key, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	trust(pool)
	if n := number(); n != 2 {
		t.Errorf("certificate %d", n)
	}
	// A write without a body is one over HTTP/2 too, and asks for its role.
	if answer, text := s.do("POST", "/api/v1/queues/mail/pause", "", people.as(auth.Viewer)...); answer.ProtoMajor != 2 || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a write without a body: %s %s: %s", answer.Proto, answer.Status, text)
	}
	// Who speaks no TLS is told so, and not served.
	plain, err := http.Get("http" + s.url[len("https"):] + "/healthz")
	if err != nil || plain.StatusCode != http.StatusBadRequest {
		t.Errorf("%v, %v", plain, err)
	}
	if err == nil {
		plain.Body.Close()
	}
}
