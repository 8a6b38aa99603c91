package telemetry_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/telemetry"
	"github.com/pawlwork/pawl/store/sqlite"
)

// A program with an SDK of its own hands its providers over.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	spans := tracetest.NewInMemoryExporter() // stands for an exporter
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	traced := telemetry.New(telemetry.Providers{Traces: provider})

	e, err := pawl.New(sqlite.Memory(), traced.Config(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}))
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[order]) error {
		_, span := provider.Tracer("shop").Start(ctx, "pack") // is within that of the attempt
		defer span.End()
		stop()
		return nil
	})

	request, span := provider.Tracer("shop").Start(ctx, "GET /buy")
	if _, err := e.Enqueue(request, order{7}); err != nil {
		log.Fatal(err)
	}
	span.End()
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	name := map[any]string{}
	for _, s := range spans.GetSpans() {
		name[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range spans.GetSpans() {
		fmt.Printf("%q within %q\n", s.Name, name[s.Parent.SpanID()])
	}
	// Output:
	// "enqueue order" within "GET /buy"
	// "GET /buy" within ""
	// "pack" within "process order"
	// "process order" within "enqueue order"
}

// A program without one takes what the variables say: with none of them set, nothing.
func ExampleFromEnvironment() {
	ctx := context.Background()
	traced, err := telemetry.FromEnvironment(ctx, telemetry.Options{Service: "shop", Version: "v7"})
	if err != nil {
		log.Fatal(err)
	}
	defer traced.Shutdown(ctx) // after the engine is closed
	e, err := pawl.New(sqlite.Memory(), traced.Config(pawl.Config{Queues: pawl.Queues{"default": {Workers: 10}}}))
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	pawl.HandleBatch(e, func(ctx context.Context, jobs []*pawl.Job[order]) []error {
		return nil
	}, pawl.Batch[order]{Size: 100, Observer: traced.Batch()}) // a span for each batch, with links to its jobs
	fmt.Println("ready")
	// Output: ready
}
