package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/server/httpapi"
)

// certify writes a certificate for loopback, of its own making.
func certify(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "pawl"}, IsCA: true, BasicConstraintsValid: true,
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
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return cert, key, pool
}

// status is what a server answers.
func (s *server) status(client *http.Client, path string, headers ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatalf("%v: %s", err, s.text)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (s *server) want(status int, path string, headers ...string) {
	s.t.Helper()
	if got, text := s.status(http.DefaultClient, path, headers...); got != status {
		s.t.Errorf("%s %q: %d, want %d: %.300s", path, headers, got, status, text)
	}
}

func TestU5_ServeSpeaksTLSByItsFlags(t *testing.T) {
	cert, key, pool := certify(t)
	s := startServer(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatal(s.url)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	if got, text := s.status(&http.Client{Transport: transport}, httpapi.Prefix+"/jobs"); got != 200 {
		t.Errorf("%d: %s", got, text)
	}
	plain := *s
	plain.url = "http" + strings.TrimPrefix(s.url, "https")
	if got, text := plain.status(http.DefaultClient, httpapi.Prefix+"/jobs"); got != 400 || strings.Contains(text, "jobs") {
		t.Errorf("without TLS: %d: %s", got, text)
	}
	// The command line trusts whom the system does.
	trusting := program(t, "--server", s.url, "queue", "list", "--json")
	trusting.Env = append(trusting.Env, "SSL_CERT_FILE="+cert)
	if out, problems, code := endOf(t, trusting); code != exitOK || !json.Valid([]byte(out)) {
		t.Errorf("%d: %s%s", code, out, problems)
	}
	if _, problems, code := endOf(t, program(t, "--server", s.url, "queue", "list")); code != exitUnreachable || !strings.Contains(problems, "certificate") {
		t.Errorf("a certificate that nobody vouches for: %d: %s", code, problems)
	}
	// What does not go together is refused before anything is served.
	_, other, _ := certify(t)
	for name, args := range map[string][]string{
		"no key": {"--tls-cert", cert}, "no certificate": {"--tls-key", key}, "a key of another": {"--tls-cert", cert, "--tls-key", other},
		"no file": {"--tls-cert", cert + ".gone", "--tls-key", key},
	} {
		out, problems, code := endOf(t, program(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
		if code == exitOK || strings.Contains(out, "serves") || !strings.Contains(strings.ToLower(problems), "tls") {
			t.Errorf("%s: %d: %s%s", name, code, out, problems)
		}
	}
}

func TestU5_ServeIsCalledByTheNamesOfItsFlag(t *testing.T) {
	s := startServer(t, "--hosts", "pawl.example, other.example:8080")
	const jobs = httpapi.Prefix + "/jobs"
	s.want(200, jobs)
	s.want(200, jobs, "Host", "pawl.example")
	s.want(200, jobs, "Host", "Other.Example:8080")
	s.want(403, jobs, "Host", "other.example")
	s.want(403, jobs, "Host", "evil.example")

	alone := startServer(t)
	alone.want(200, jobs)
	alone.want(403, jobs, "Host", "pawl.example")
}

func TestU5_ServeShowsProfilesByItsFlag(t *testing.T) {
	const page = "/debug/pprof/cmdline"
	startServer(t).want(404, page)
	startServer(t, "--pprof").want(200, page)

	secrets, file := map[string]string{}, filepath.Join(t.TempDir(), "tokens")
	var text strings.Builder
	for _, role := range []string{"viewer", "operator", "admin"} {
		out, problems, code := endOf(t, program(t, "token", "new", role, "--role", role))
		secret, line, found := strings.Cut(out, "\n")
		if code != exitOK || !found {
			t.Fatalf("%d: %s%s", code, out, problems)
		}
		secrets[role] = secret
		text.WriteString(line)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, "--pprof", "--tokens", file, "--hide-payloads")
	for role, status := range map[string]int{"viewer": 403, "operator": 403, "admin": 200} {
		s.want(status, page, "Authorization", "Bearer "+secrets[role])
	}
	s.want(401, page)
	// Payloads are hidden from viewers by a flag, too.
	in := program(t, "--server", s.url, "job", "enqueue", "welcome", `{"card":"geheim"}`, "--in", "1h")
	in.Env = append(in.Env, "PAWL_TOKEN="+secrets["operator"])
	out, problems, code := endOf(t, in)
	if code != exitOK {
		t.Fatalf("%d: %s%s", code, out, problems)
	}
	for role, seen := range map[string]bool{"viewer": false, "operator": true} {
		_, text := s.status(http.DefaultClient, httpapi.Prefix+"/jobs/"+strings.TrimSpace(out), "Authorization", "Bearer "+secrets[role])
		if strings.Contains(text, "geheim") != seen || !strings.Contains(text, "welcome") {
			t.Errorf("%s: %s", role, text)
		}
	}
}
