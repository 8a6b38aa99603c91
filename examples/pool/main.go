// Command pool has jobs done by Python processes: go run ./examples/pool kinds/pool/testdata/child.py
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/pool"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Count is the kind of job that children do. Its fields are what they read.
type Count struct {
	Text string `json:"text"`
}

// Kind is what the child knows it by.
func (Count) Kind() string { return "count.words" }

func main() {
	pool.Guard() // first of all

	if len(os.Args) != 2 {
		log.Fatal("usage: pool child.py")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, script string) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	script, err := filepath.Abs(script)
	if err != nil {
		return err
	}
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 4}},
	})
	if err != nil {
		return err
	}
	p, err := pool.Register(e, pool.Config{
		Kinds: []string{"count.words"},
		Path:  "/usr/bin/python3",
		Args:  []string{script},
		Size:  2,
	})
	if err != nil {
		return err
	}
	defer p.Close()
	defer e.Close() // before the pool

	working, ended := context.WithCancel(ctx)
	defer ended()
	worked := make(chan error, 1)
	go func() { worked <- e.Run(working) }()

	r, err := e.Enqueue(ctx, Count{Text: "how many words are these"})
	if err != nil {
		return err
	}
	counted, err := pawl.Result[map[string]int](ctx, e, r.ID, pawl.UntilEnded())
	if err != nil {
		return err
	}
	fmt.Println(counted["words"], "words") // 5 words
	ended()
	return <-worked
}
