// Webhooks posts an order to a receiver, signed. Both are in this program; the
// receiver is busy at first, so that the post is seen to come again, under the
// same id. Stop it with Ctrl-C.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/webhook"
	"github.com/pawlwork/pawl/store/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	secret := webhook.NewSecret() // both sides keep it; it is printed by Reveal only
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	receiver := &http.Server{Handler: &inbox{secrets: []webhook.Secret{secret}}, ReadTimeout: 10 * time.Second}
	go receiver.Serve(listener)
	defer receiver.Close()

	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	if err := webhook.Register(e, webhook.Config{
		Secrets:        map[string][]webhook.Secret{"shop": {secret}},
		AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // refused otherwise: it is ourselves
	}); err != nil {
		log.Fatal(err)
	}
	if _, err := e.Enqueue(ctx, webhook.Post{
		URL:    "http://" + listener.Addr().String() + "/orders",
		Body:   json.RawMessage(`{"type":"order.placed","data":{"order":7}}`),
		Secret: "shop",
	}); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// inbox is the receiver. A real one remembers ids where it keeps the rest.
type inbox struct {
	secrets []webhook.Secret
	asked   atomic.Int32
}

func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err := webhook.Verify(i.secrets, r.Header, body, 5*time.Minute, time.Now()); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	id := r.Header.Get(webhook.HeaderID)
	if i.asked.Add(1) == 1 {
		fmt.Println("busy, come again:", id)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	fmt.Printf("received %s: %s\n", id, body)
}
