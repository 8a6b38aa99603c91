package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The example of the Standard Webhooks specification's own libraries.
var (
	knownSecret    = must(ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
	knownID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	knownTime      = time.Unix(1614265330, 0)
	knownBody      = []byte(`{"test": 2432232314}`)
	knownSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func knownHeader() http.Header {
	return http.Header{HeaderID: {knownID}, HeaderTimestamp: {"1614265330"}, HeaderSignature: {knownSignature}}
}

func TestJ23_SignatureIsThatOfTheSpecification(t *testing.T) {
	if got := Sign([]Secret{knownSecret}, knownID, knownTime, knownBody); got != knownSignature {
		t.Errorf("signed %s, want %s", got, knownSignature)
	}
	if err := Verify([]Secret{knownSecret}, knownHeader(), knownBody, 0, knownTime); err != nil {
		t.Error(err)
	}
}

func TestJ23_VerifyRefusesAllElse(t *testing.T) {
	set := func(name, value string) func(http.Header) {
		return func(h http.Header) { h.Set(name, value) }
	}
	add := func(name, value string) func(http.Header) { return func(h http.Header) { h.Add(name, value) } }
	for name, c := range map[string]struct {
		change    func(http.Header)
		body      string
		secrets   []Secret
		now       time.Duration
		tolerance time.Duration
		want      error
	}{
		"as it is":                  {},
		"with others before it":     {change: set(HeaderSignature, "v1,AAAA v2,x v1a,y , v1,%% v1 "+knownSignature)},
		"with a newer secret first": {secrets: []Secret{NewSecret(), knownSecret}},
		"lower case names": {change: func(h http.Header) {
			for name, values := range h.Clone() {
				delete(h, name)
				h.Add(strings.ToLower(name), values[0])
			}
		}},
		"late, within":        {now: 5 * time.Minute},
		"early, within":       {now: -5 * time.Minute},
		"late":                {now: 5*time.Minute + time.Second, want: ErrTimestamp},
		"early":               {now: -5*time.Minute - time.Second, want: ErrTimestamp},
		"late for another":    {now: 2 * time.Second, tolerance: time.Second, want: ErrTimestamp},
		"late but tolerated":  {now: time.Hour, tolerance: time.Hour},
		"another body":        {body: `{"test":2432232314}`, want: ErrSignature},
		"no body":             {body: " ", want: ErrSignature},
		"another secret":      {secrets: []Secret{NewSecret()}, want: ErrSignature},
		"no secrets":          {secrets: []Secret{}, want: ErrSignature},
		"an empty secret":     {secrets: []Secret{{}}, want: ErrSignature},
		"another id":          {change: set(HeaderID, "msg_other"), want: ErrSignature},
		"another time":        {change: set(HeaderTimestamp, "1614265331"), want: ErrSignature},
		"signed time":         {change: set(HeaderTimestamp, "+1614265330"), want: ErrSignature},
		"time with zero":      {change: set(HeaderTimestamp, "01614265330"), want: ErrSignature},
		"time in words":       {change: set(HeaderTimestamp, "now"), want: ErrSignature},
		"time too long":       {change: set(HeaderTimestamp, "16142653300000"), want: ErrSignature},
		"no id":               {change: func(h http.Header) { h.Del(HeaderID) }, want: ErrSignature},
		"no time":             {change: func(h http.Header) { h.Del(HeaderTimestamp) }, want: ErrSignature},
		"no signature":        {change: func(h http.Header) { h.Del(HeaderSignature) }, want: ErrSignature},
		"an empty signature":  {change: set(HeaderSignature, ""), want: ErrSignature},
		"of no version":       {change: set(HeaderSignature, strings.TrimPrefix(knownSignature, "v1,")), want: ErrSignature},
		"of another version":  {change: set(HeaderSignature, "v2"+knownSignature[2:]), want: ErrSignature},
		"cut off":             {change: set(HeaderSignature, knownSignature[:20]), want: ErrSignature},
		"an empty one":        {change: set(HeaderSignature, "v1,"), want: ErrSignature},
		"two ids":             {change: add(HeaderID, "x"), want: ErrSignature},
		"two times":           {change: add(HeaderTimestamp, "1"), want: ErrSignature},
		"two lines of them":   {change: add(HeaderSignature, "v1,AAAA"), want: ErrSignature},
		"a long id":           {change: set(HeaderID, strings.Repeat("x", 300)), want: ErrSignature},
		"behind many of them": {change: set(HeaderSignature, strings.Repeat("v1,AAAA ", 16)+knownSignature), want: ErrSignature},
	} {
		header := knownHeader()
		if c.change != nil {
			c.change(header)
		}
		canonical := http.Header{}
		for name, values := range header {
			for _, v := range values {
				canonical.Add(name, v)
			}
		}
		body, secrets := knownBody, []Secret{knownSecret}
		if c.body != "" {
			body = []byte(c.body)
		}
		if c.secrets != nil {
			secrets = c.secrets
			if name == "no secrets" {
				secrets = nil
			}
		}
		if err := Verify(secrets, canonical, body, c.tolerance, knownTime.Add(c.now)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A signed text cannot be cut into three parts another way: an id or time that
// swallows the beginning of the body is refused though its signature is right.
func TestJ23_PartsOfASignatureCannotBeMoved(t *testing.T) {
	secret := NewSecret()
	at := time.Unix(1700000000, 0)
	signature := Sign([]Secret{secret}, "job", at, []byte("1700000000.rest"))
	moved := http.Header{HeaderID: {"job.1700000000"}, HeaderTimestamp: {"1700000000"}, HeaderSignature: {signature}}
	if err := Verify([]Secret{secret}, moved, []byte("rest"), 0, at); !errors.Is(err, ErrSignature) {
		t.Errorf("taken: %v", err)
	}
}

// While secrets rotate, a post is signed with all of them: who has only the old
// one and who has only the new one both take it.
func TestJ23_SecretsRotate(t *testing.T) {
	old, fresh := NewSecret(), NewSecret()
	server := newReceiver(t, nil)
	s := sending(t, func(c *Config) { c.Secrets = map[string][]Secret{"acme": {fresh, old}} })
	if _, err := s.attempt(t.Context(), Post{URL: server.URL, Body: []byte(`{"n":1}`), Secret: "acme"}); err != nil {
		t.Fatal(err)
	}
	r := server.requests()[0]
	for name, secret := range map[string]Secret{"old": old, "new": fresh} {
		if err := Verify([]Secret{secret}, r.header, []byte(r.body), 0, time.Now()); err != nil {
			t.Errorf("with the %s one: %v", name, err)
		}
	}
	if err := Verify([]Secret{NewSecret()}, r.header, []byte(r.body), 0, time.Now()); !errors.Is(err, ErrSignature) {
		t.Errorf("with a stranger's: %v", err)
	}
}

func TestJ23_SecretsDoNotShowThemselves(t *testing.T) {
	secret := NewSecret()
	again, err := ParseSecret(secret.Reveal())
	if err != nil || !bytes.Equal(again.bytes, secret.bytes) {
		t.Errorf("read back: %v", err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q %x", secret, []Secret{secret}, Config{Secrets: map[string][]Secret{"a": {secret}}},
		secret, secret, secret)
	asJSON, _ := json.Marshal(map[string]any{"secret": secret})
	core := strings.TrimPrefix(secret.Reveal(), secretPrefix)
	if strings.Contains(shown, core) || strings.Contains(shown, fmt.Sprintf("%x", secret.bytes)) || bytes.Contains(asJSON, []byte(core)) {
		t.Errorf("%s %s", shown, asJSON)
	}
	for _, text := range []string{"", "whsec_", "whsec_%%%", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)),
		base64.StdEncoding.EncodeToString(make([]byte, 65)), "topsecret"} {
		if _, err := ParseSecret(text); err == nil || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzVerify: whatever is accepted has a signature that is worked out here anew.
func FuzzVerify(f *testing.F) {
	f.Add(knownID, "1614265330", knownSignature, string(knownBody))
	f.Add("a.b", "1614265330", knownSignature, "")
	f.Add("", "-1", "v1,", "\x00")
	f.Add(knownID, "01614265330", "v1,AAAA "+knownSignature, string(knownBody))
	f.Fuzz(func(t *testing.T, id, timestamp, signature, body string) {
		h := http.Header{HeaderID: {id}, HeaderTimestamp: {timestamp}, HeaderSignature: {signature}}
		if err := Verify([]Secret{knownSecret}, h, []byte(body), 0, knownTime); err != nil {
			if !errors.Is(err, ErrSignature) && !errors.Is(err, ErrTimestamp) {
				t.Errorf("neither of the two errors: %v", err)
			}
		} else {
			m := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")))
			fmt.Fprintf(m, "%s.%s.%s", id, timestamp, body)
			if !strings.Contains(signature, "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil))[:42]) {
				t.Errorf("accepted %q", signature)
			}
		}
		if id == "" || strings.Contains(id, ".") || len(id) > mostID {
			return
		}
		// What is signed is accepted.
		h.Set(HeaderTimestamp, strconv.FormatInt(knownTime.Unix(), 10))
		h.Set(HeaderSignature, Sign([]Secret{knownSecret}, id, knownTime, []byte(body)))
		if err := Verify([]Secret{knownSecret}, h, []byte(body), 0, knownTime); err != nil {
			t.Errorf("refused what was signed: %v", err)
		}
	})
}
