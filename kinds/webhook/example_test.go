package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/webhook"
	"github.com/pawlwork/pawl/store/sqlite"
)

// receive is the other side: it takes what was signed by the one who shares its
// secrets, and each post once.
func receive(secrets []webhook.Secret, take func(id string, body []byte)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err := webhook.Verify(secrets, r.Header, body, 5*time.Minute, time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		take(r.Header.Get(webhook.HeaderID), body) // the id is the same when a post comes again
	}
}

// A sender and a receiver.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	secret, err := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") // from where secrets are kept
	if err != nil {
		log.Fatal(err)
	}

	receiver := httptest.NewServer(receive([]webhook.Secret{secret}, func(id string, body []byte) {
		fmt.Printf("received %s\n", body)
	}))
	defer receiver.Close()

	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	if err := webhook.Register(e, webhook.Config{
		Secrets:        map[string][]webhook.Secret{"acme": {secret}},
		AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // this example posts to itself
	}); err != nil {
		log.Fatal(err)
	}

	r, err := e.Enqueue(ctx, webhook.Post{
		URL:    receiver.URL + "/orders",
		Body:   json.RawMessage(`{"type":"order.placed","data":{"order":7}}`),
		Secret: "acme",
	}, pawl.Key("acme"))
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer stop()
		if _, err := e.Wait(ctx, r.ID); err != nil {
			log.Print(err)
			return
		}
		answer, err := pawl.Result[webhook.Response](ctx, e, r.ID)
		fmt.Println("answered", answer.Status, err)
	}()
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// received {"type":"order.placed","data":{"order":7}}
	// answered 200 <nil>
}

// Secrets that are kept elsewhere, one for each receiver.
func ExampleConfig() {
	ctx := context.Background()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 10}}})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	secretsOf := func(ctx context.Context, receiver string) ([]webhook.Secret, error) {
		return nil, nil // select secret from receiver where name = $1 order by made desc
	}
	config := webhook.Config{
		SecretsOf: secretsOf,
		HTTPSOnly: true,
		Ports:     []int{443},
		DeadOn:    []int{http.StatusNotFound, http.StatusUnprocessableEntity},
	}
	err = webhook.Register(e, config, pawl.Backoff(pawl.Exponential(5*time.Second, 12*time.Hour)))
	if err != nil {
		log.Fatal(err)
	}
	post := webhook.Post{URL: "https://169.254.169.254/latest/meta-data"}
	if err := post.Check(config); err != nil {
		fmt.Println(err) // say so to who typed it, and do not enqueue
		return
	}
	if _, err := e.Enqueue(ctx, post); err != nil {
		log.Fatal(err)
	}
	// Output: pawl: invalid webhook url: address 169.254.169.254 is refused: link-local (see Config.AllowAddresses and AllowHosts)
}

// One receiver that says 429 stops its own posts and no others.
func ExampleConfig_limit() {
	ctx := context.Background()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
		Limits: []pawl.Limit{{Name: "receivers", Kind: webhook.Kind, PerKey: true, PerSecond: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	post := webhook.Post{URL: "https://hooks.example/orders"}

	if err := webhook.Register(e, webhook.Config{AllowUnsigned: true, Limit: "receivers"}); err != nil {
		log.Fatal(err)
	}
	if _, err := e.Enqueue(ctx, post, pawl.Key("acme")); err != nil { // a key for each receiver
		log.Fatal(err)
	}
	// Output:
}

// Tests of a receiver sign for themselves.
func ExampleSign() {
	secret := webhook.NewSecret()
	body := []byte(`{"n":1}`)
	now := time.Now()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set(webhook.HeaderID, "job-1")
	r.Header.Set(webhook.HeaderTimestamp, fmt.Sprint(now.Unix()))
	r.Header.Set(webhook.HeaderSignature, webhook.Sign([]webhook.Secret{secret}, "job-1", now, body))

	fmt.Println(webhook.Verify([]webhook.Secret{secret}, r.Header, body, 0, now))
	fmt.Println(webhook.Verify([]webhook.Secret{secret}, r.Header, []byte(`{"n":2}`), 0, now))
	// Output:
	// <nil>
	// webhook: signature does not match
}
